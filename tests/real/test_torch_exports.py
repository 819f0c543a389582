"""Which torch real extensions fit, from the symbols of their wheels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envspec.torch_abi.exports import load
from envspec.wheels.ranged import new_session
from envspec.wheels.remote import RemoteWheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Numbers of torch symbols that each wheel wants and each torch lacks.
REAL = {
    ("sglang-kernel", "0.4.2.post2"): (0, 4, 6),
    ("sglang-kernel", "0.4.6.post1"): (6, 2, 1),
    ("sglang-kernel", "0.4.10"): (6, 4, 0),
    ("torchvision", "0.26.0"): (0, 2, 7),
    ("torchaudio", "2.11.0"): (0, 0, 0),
}


@pytest.mark.parametrize(("package", "version"), REAL)
def test_real_wheels(package: str, version: str, tmp_path: Path) -> None:
    taken: list[int] = []
    session = new_session()
    session.hooks["response"].append(lambda r, **_: taken.append(int(r.headers["Content-Length"])))
    wheel = RemoteWheel(url_of(package, version, tmp_path), session)
    libraries = [wheel.elf(m.name) for m in wheel.members if ".so" in m.name.rpartition("/")[2]]
    offered = frozenset().union(*(elf.symbols.exports for elf in libraries))
    wanted = frozenset().union(*(elf.symbols.imports for elf in libraries)) - offered
    torch = load()
    found = tuple(len(torch.missing(wanted, release, "x86_64")) for release in ("2.11.0", "2.12.0", "2.14.1"))
    assert found == REAL[package, version]
    assert torch.is_stable_only(wanted) == (package == "torchaudio")
    assert sum(taken) < 2_000_000


def url_of(package: str, version: str, folder: Path) -> str:
    """Where the wheel for x86_64 and this Python is, asked of uv."""
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    marker = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "probe"\nversion = "0"\nrequires-python = "=={minor}.*"\n'
        f'dependencies = ["{package}=={version}"]\n[tool.uv]\nenvironments = ["{marker}"]\n'
    )
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "lock", "--quiet", "--python", sys.executable]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    lock = tomllib.loads((folder / "uv.lock").read_text())
    tag = f"-cp{minor.replace('.', '')}-cp"
    for row in next(p for p in lock["package"] if p["name"] == package)["wheels"]:
        if "x86_64" in row["url"] and (tag in row["url"] or "abi3" in row["url"]):
            return str(row["url"])
    pytest.skip(f"no wheel of {package} {version} for Python {minor}")
