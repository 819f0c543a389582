"""Make envspec/data/torch_exports/ again: which torch release exports which symbol.

    python scripts/make_torch_exports.py collect WORKDIR 2.8.0 2.9.0 ... [--python PYTHON]
    python scripts/make_torch_exports.py pack WORKDIR

`collect` asks uv where each release's Linux wheels are (for the minor version of PYTHON), reads the members
under torch/lib by ranged requests, one library at a time, and keeps the exported names in WORKDIR; it
continues where an earlier run stopped. It moves 0.5 GB a wheel and needs 1 GB of disk. `pack` writes the
tables from all that WORKDIR holds.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from packaging.version import Version

from envspec.elf import read
from envspec.torch_abi.export_table import TorchBuild, describe, encode
from envspec.wheels.ranged import new_session
from envspec.wheels.remote import RemoteWheel

MACHINES = ("x86_64", "aarch64")
# Not torch's own: libgomp, BLAS, Fortran and Arm libraries that some wheels bundle, and its tests' libraries.
PIECE = 16 << 20
OWN = re.compile(r"lib(c10|caffe2|shm|torch(?!bind_test))\w*\.so")
CXX11_NAME = b"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
DATA = Path(__file__).parent.parent / "envspec" / "data" / "torch_exports"


def main() -> int:
    """Parse, call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=("collect", "pack"))
    parser.add_argument("workdir", type=Path)
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--python", default=sys.executable, help="whose minor version's wheels are read")
    parser.add_argument("--machine", choices=MACHINES, action="append")
    arguments = parser.parse_args()
    arguments.workdir.mkdir(parents=True, exist_ok=True)
    if arguments.step == "pack":
        pack(arguments.workdir)
        return 0
    for release in arguments.releases:
        collect(arguments.workdir, release, arguments.python, arguments.machine or MACHINES)
    return 0


def collect(workdir: Path, release: str, python: str, machines: tuple[str, ...]) -> None:
    """Keep the exports of one release's wheels, one JSON file a wheel."""
    for wheel in wheels(release, python, machines):
        url = wheel["url"]
        name = PurePosixPath(url).name
        kept = workdir / f"{name}.json.z"
        if kept.exists():
            continue
        print(name, flush=True)
        remote = RemoteWheel(url, new_session())
        row = {
            "release": release,
            "machine": next(m for m in MACHINES if name.endswith(f"{m}.whl")),
            "wheel": name,
            "sha256": wheel["hash"].removeprefix("sha256:"),
            "as_of": datetime.date.today().isoformat(),
            "cuda": cuda_version(remote),
            "libraries": exports(remote),
        }
        kept.with_suffix(".part").write_bytes(zlib.compress(json.dumps(row).encode(), 6))
        kept.with_suffix(".part").rename(kept)


def wheels(release: str, python: str, machines: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of uv's lock file for the Linux wheels of a release that fit PYTHON."""
    minor = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    markers = [f"sys_platform == 'linux' and platform_machine == '{machine}'" for machine in machines]
    project = {
        "name": "probe",
        "version": "0",
        "requires-python": f"=={minor}.*",
        "dependencies": [f"torch=={release}"],
    }
    lines = ["[project]", *(f"{key} = {json.dumps(value)}" for key, value in project.items())]
    lines += ["[tool.uv]", f"environments = {json.dumps(markers)}"]
    tag = f"-cp{minor.replace('.', '')}-cp{minor.replace('.', '')}-"
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "pyproject.toml").write_text("\n".join(lines))
        uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
        subprocess.run([uv, "lock", "--quiet", "--python", python], cwd=scratch, check=True)
        lock = tomllib.loads((Path(scratch) / "uv.lock").read_text())
    torch = next(package for package in lock["package"] if package["name"] == "torch")
    rows = {
        next((m for m in machines if row["url"].endswith(f"{m}.whl")), ""): row
        for row in torch["wheels"]
        if tag in row["url"]
    }
    missing = [machine for machine in machines if machine not in rows]
    if missing:
        print(f"torch {release} has no wheel for {missing}", file=sys.stderr)
    return [rows[machine] for machine in machines if machine in rows]


def cuda_version(wheel: RemoteWheel) -> str:
    """The CUDA version that torch/version.py names; "" for a build without CUDA."""
    found = re.search(r"^cuda\b.*=\s*'([\d.]+)'", wheel.read("torch/version.py").decode(), re.MULTILINE)
    return found[1] if found else ""


def exports(wheel: RemoteWheel) -> dict[str, list[str]]:
    """The exported names of each of torch's own libraries."""
    libraries: dict[str, list[str]] = {}
    with zipfile.ZipFile(io.BufferedReader(wheel.file.open(), PIECE)) as archive:
        for member in archive.namelist():
            path = PurePosixPath(member)
            if str(path.parent) != "torch/lib" or not OWN.match(path.name):
                continue
            with tempfile.NamedTemporaryFile() as scratch:
                with archive.open(member) as content:
                    shutil.copyfileobj(content, scratch, PIECE)
                scratch.flush()
                names = read(scratch.name).symbols.exports
            libraries[path.name] = sorted(name.decode("ascii") for name in names)
    return libraries


def pack(workdir: Path) -> None:
    """Write the tables from what was collected."""
    rows = [json.loads(zlib.decompress(kept.read_bytes())) for kept in workdir.glob("*.json.z")]
    rows.sort(key=lambda row: (Version(row["release"]), MACHINES.index(row["machine"])))
    builds: list[TorchBuild] = []
    names: list[set[bytes]] = []
    for row in rows:
        own = {library: found for library, found in row["libraries"].items() if OWN.match(library)}
        names.append({name.encode("ascii") for found in own.values() for name in found})
        builds.append(
            TorchBuild(
                release=row["release"],
                machine=row["machine"],
                cuda=row["cuda"],
                cxx11_abi=CXX11_NAME in names[-1],
                wheel=row["wheel"],
                sha256=row["sha256"],
                as_of=row["as_of"],
                libraries={library: len(found) for library, found in sorted(own.items())},
            )
        )
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "exports.bin").write_bytes(encode(names))
    (DATA / "releases.json").write_bytes(describe(builds))


if __name__ == "__main__":
    sys.exit(main())
