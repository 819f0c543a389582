"""Which releases of an extension fit which torch, and who requires a package: on tiny wheels, without a network."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envspec.check.collect import collect_selection
from envspec.check.facts import dependency_paths
from envspec.check.input import read_input
from envspec.check.match import MatchRow, fitting_versions, match
from envspec.cli.progress import make_progress
from envspec.lock.targets import Target
from envspec.profile import Profile, read_profile
from envspec.report.errors import UsageError
from envspec.uv.run import Uv
from tests.support.index import LoopbackIndex, serve_index
from tests.support.wheels import make_wheel

MACHINE = platform.machine()
TARGET = Target("3.12", MACHINE)
SYMBOLS = {
    "1.0": "_ZN2at4cuda24getCurrentCUDABlasHandleEv",  # torch up to 2.11.0
    "1.1": "_ZN2at4cuda24getCurrentCUDABlasHandleEb",  # torch from 2.12.0 on
    "1.2": "cudaMalloc",
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheels")
    for version, symbol in SYMBOLS.items():
        library = made / "made.so"
        subprocess.run(
            ["c++", "-x", "c", "-shared", "-fPIC", "-o", library, "-"],
            input=f"int {symbol}(void);\nint own(void) {{ return {symbol}(); }}\n",
            text=True,
            check=True,
        )
        make_wheel(
            made,
            "my-kernels",
            version,
            {"my_kernels/ops.so": library.read_bytes()},
            requires=["torch==2.11.0"] if version == "1.0" else ["torch"],
            tag=f"py3-none-linux_{MACHINE}",
        )
        library.unlink()
    make_wheel(made, "my-kernels", "2.0", {"my_kernels/ops.so": b"\x7fELF, and no more"})
    make_wheel(made, "my-kernels", "3.0rc1", tag="cp39-cp39-win_amd64")
    make_wheel(made, "torch", "2.11.0")
    return made


@pytest.fixture(params=["json", "html"])
def index(wheels: Path, request: pytest.FixtureRequest) -> Iterator[LoopbackIndex]:
    """An index of either kind."""
    with serve_index(wheels) as running:
        running.html = request.param == "html"
        yield running


def rows(uv: Uv, most: int = 20, profile: Profile | None = None) -> list[MatchRow]:
    return list(match("my-kernels", TARGET, uv, Path(sys.executable), most, profile=profile).rows)


def test_releases_of_an_index_with_what_they_fit(
    index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    index.yanked[f"my_kernels-1.1-py3-none-linux_{MACHINE}.whl"] = "a mistake"
    damaged, plain, old = rows(Uv())
    assert (damaged.version, damaged.fits, bool(damaged.problem)) == ("2.0", (), True)
    assert (plain.version, plain.imports_torch, plain.declares) == ("1.2", False, "any")
    uploaded = "" if index.html else "2026-01-01"  # PEP 503 knows no times
    assert (old.version, old.uploaded, old.declares) == ("1.0", uploaded, "==2.11.0")
    assert old.fits[0] == "2.8.0" and old.fits[-1] == "2.11.0"
    assert [row.version for row in rows(Uv(), most=1)] == ["2.0"]


def test_releases_of_a_directory_that_the_profile_names(tmp_path: Path, wheels: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(
        '[gpu]\narch = "12.0a"\n[packages]\nmy-kernels = "*"\n'
        f'[[index]]\nname = "here"\nurl = "{wheels.as_uri()}"\nformat = "flat"\ndefault = true\n'
    )
    found = match(
        "my-kernels", TARGET, Uv(offline=True), Path(sys.executable), 20, profile=read_profile(path)
    )
    assert [row.version for row in found.rows] == ["2.0", "1.2", "1.1", "1.0"]
    assert fitting_versions(found, "2.11.0") == ("1.0",)
    assert fitting_versions(found, "2.12.0") == ("1.1",)


def test_a_package_that_is_nowhere_or_not_for_this_target(
    index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    with pytest.raises(UsageError) as caught:
        match("nothing-here", TARGET, Uv(), Path(sys.executable), 20)
    assert caught.value.code == "unknown-package"
    index.gone |= {path.name for path in index.directory.glob("my_kernels-[12]*.whl")}
    with pytest.raises(UsageError) as caught:
        match("my-kernels", TARGET, Uv(), Path(sys.executable), 20)
    assert caught.value.code in ("no-wheel", "unknown-package")


def test_who_requires_a_package_with_versions_and_extras(tmp_path: Path) -> None:
    made = tmp_path / "wheels"
    make_wheel(made, "app", "1", requires=["mid[fast]>=1", "low"])
    make_wheel(
        made,
        "mid",
        "1",
        requires=["low<3; extra == 'fast'", "low<1; python_version < '3'"],
        extras=["fast"],
    )
    make_wheel(made, "low", "2")
    path = tmp_path / "p.toml"
    path.write_text(
        '[gpu]\narch = "12.0a"\n[packages]\napp = "1"\n'
        '[[index]]\nname = "here"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    uv = Uv(offline=True)
    given = read_input(read_profile(path), uv, make_progress())
    selection = collect_selection(given, TARGET, uv, Path(sys.executable))
    assert dependency_paths(selection, "low", 9) == (
        "low 2 <- app 1 (any version) <- your profile",
        "low 2 <- mid 1 (<3 [fast]) <- app 1 <- your profile",
    )
    assert dependency_paths(selection, "low", 1) == ("low 2 <- app 1 (any version) <- your profile",)
    assert dependency_paths(selection, "app", 9) == ("app 1 <- your profile (==1)",)
    assert dependency_paths(selection, "nothing", 9) == ()
