"""Makes data/host_compilers.toml and data/triton_ptxas.toml from the real wheels, by ranged reads.

    python scripts/make_tool_tables.py [--python PATH]

The limits stand in nvcc's own crt/host_config.h; the ptxas inside triton names its release in its own strings. The index
is whatever uv is configured with.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envspec.lock.graph import parse_uv_lock
from envspec.uv.run import Uv
from envspec.wheels.file import ResolvedFile
from envspec.wheels.ranged import shared_session
from envspec.wheels.remote import RemoteWheel

DATA = Path(__file__).parent.parent / "envspec" / "data"
# One wheel for each CUDA minor: the limits change with minors only.
HOST_CONFIG = [
    *(("nvidia-cuda-nvcc-cu12", v) for v in ("12.4.131", "12.6.85", "12.8.93", "12.9.86")),
    *(("nvidia-cuda-crt", v) for v in ("13.0.88", "13.1.115", "13.2.86", "13.3.73", "13.4.92", "13.5.37")),
]
TRITON = ["3.3.0", "3.3.1", "3.4.0", "3.5.0", "3.5.1", "3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    python = parser.parse_args().python
    today = datetime.date.today().isoformat()
    rows = [
        row for name, version in HOST_CONFIG for row in limits(wheel(name, version, python), version, today)
    ]
    write(
        "host_compilers",
        rows,
        "The newest host compiler majors that each nvcc accepts, from its crt/host_config.h.",
    )
    rows = [ptxas(wheel("triton", version, python), version, today) for version in TRITON]
    write(
        "triton_ptxas",
        rows,
        "The newest ptxas inside each triton wheel (ptxas-blackwell where there is one).",
    )


def wheel(name: str, version: str, python: Path) -> ResolvedFile:
    """The x86_64 wheel of one release."""
    with tempfile.TemporaryDirectory() as work:
        project = Path(work)
        marker = "sys_platform == 'linux' and platform_machine == 'x86_64'"
        (project / "pyproject.toml").write_text(
            f'[project]\nname = "profile"\nversion = "0"\nrequires-python = "==3.12.*"\n'
            f"dependencies = [{json.dumps(f'{name}=={version}')}]\n"
            f"[tool.uv]\npackage = false\nenvironments = [{json.dumps(marker)}]\n"
        )
        Uv().lock(project, python, None)
        graph = parse_uv_lock((project / "uv.lock").read_text())
    found = next(p for p in graph.packages if p.name == name)
    return next(w for w in found.wheels if "x86_64" in w.filename)


def limits(file: ResolvedFile, version: str, today: str) -> Iterator[dict[str, str | int]]:
    remote = RemoteWheel(file.url, shared_session())
    member = next(m.name for m in remote.members if m.name.endswith("crt/host_config.h"))
    text = remote.read(member).decode()
    for family, sign in (("gcc", r"__GNUC__ > (\d+)"), ("clang", r"__clang_major__ >= (\d+)")):
        number = int(re.search(sign, text)[1])  # type: ignore[index]
        yield {
            "family": family,
            "cuda": ".".join(version.split(".")[:2]),
            "newest": number if family == "gcc" else number - 1,
            "source": f"{file.filename}: crt/host_config.h",
            "as-of": today,
        }


def ptxas(file: ResolvedFile, version: str, today: str) -> dict[str, str | int]:
    remote = RemoteWheel(file.url, shared_session())
    names = [m.name for m in remote.members if re.search(r"/bin/ptxas(-blackwell)?$", m.name)]
    found = {}
    for name in names:
        text = remote.read(name, limit=128 << 20)
        match = re.search(rb"cuda_(\d+\.\d+)\.r\d", text)
        if match:
            found[match[1].decode()] = name
    newest = max(found, key=lambda v: tuple(map(int, v.split("."))))
    return {
        "triton": version,
        "ptxas": newest,
        "source": f"{file.filename}: {found[newest].rsplit('/', 1)[-1]}",
        "as-of": today,
    }


def write(name: str, rows: list[dict[str, str | int]], about: str) -> None:
    lines = [f"# {about}", "# Made by scripts/make_tool_tables.py."]
    for row in rows:
        lines += ["", "[[row]]", *(f"{key} = {json.dumps(value)}" for key, value in row.items())]
    (DATA / f"{name}.toml").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
