"""`check --fix` applies what findings carry as data: on tiny wheels, with and without the words of every finding.

Each case is a profile that the check refuses, and what the fix makes of it. It is fixed twice: once as it is, and once
with every text of every finding replaced by other words; both must end in the same profile.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from envspec.check.fix import FixResult, fix_profile
from envspec.check.input import target_of
from envspec.check.run import check_profile
from envspec.cli.progress import make_progress
from envspec.profile import Profile, read_profile
from envspec.report.errors import UsageError
from envspec.report.findings import Finding, Report
from envspec.uv.run import Uv
from tests.support.wheels import make_toolkit, make_wheel

BLAS_OLD = "_ZN2at4cuda24getCurrentCUDABlasHandleEv"  # torch up to 2.11.0 has it
BLAS_NEW = "_ZN2at4cuda24getCurrentCUDABlasHandleEb"  # torch from 2.12.0 on
INDEX = (
    f'[resolve]\nmachines = ["{platform.machine()}"]\n'
    '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
)
# Most of the small sets have no toolkit at all.
NO_TOOLKIT = frozenset({"toolkit-incomplete"})
PARTS = {
    "nvcc": "nvidia-cuda-nvcc==13.2.78",
    "crt": "nvidia-cuda-crt==13.2.78",
    "nvvm": "nvidia-nvvm==13.2.78",
    "cudart": "nvidia-cuda-runtime==13.2.75",
    "nvrtc": "nvidia-cuda-nvrtc==13.2.78",
    "cccl": "nvidia-cuda-cccl==13.2.75",
    "cupti": "nvidia-cuda-cupti==13.2.75",
    "nvjitlink": "nvidia-nvjitlink==13.2.78",
}
SIX = '["nvcc", "crt", "nvvm", "cudart", "nvrtc", "cccl"]'
CUDA = f'[cuda]\ntoolkit = "13.2.1"\ncomponents = {SIX}\n'


def library(tmp: Path, *, imports: str = "", exports: str = "") -> bytes:
    """A shared library that wants one function and offers another one."""
    source = f"int {imports}(void);\nint own(void) {{ return {imports}(); }}\n" if imports else ""
    source += f"int {exports}(void) {{ return 1; }}\n" if exports else ""
    made = tmp / "made.so"
    subprocess.run(
        ["c++", "-x", "c", "-shared", "-fPIC", "-o", made, "-"], input=source, text=True, check=True
    )
    return made.read_bytes()


def toolkit(wheels: Path) -> None:
    """The parts of CUDA 13.2.1, and the metapackage that names them."""
    make_toolkit(wheels)
    make_wheel(wheels, "nvidia-cuda-cupti", "13.2.75")
    jitlink = library(wheels, exports="__nvJitLinkCreate_13_2")
    make_wheel(wheels, "nvidia-nvjitlink", "13.2.78", {"nvidia/cu13/lib/libnvJitLink.so.13": jitlink})
    (wheels / "made.so").unlink()
    requires = [f'{pin}; extra == "{part}"' for part, pin in PARTS.items()]
    make_wheel(wheels, "cuda-toolkit", "13.2.1", requires=requires, extras=tuple(PARTS))


def pins_that_contradict(wheels: Path) -> None:
    make_wheel(wheels, "app", "1", requires=["lib==2"])
    for version in ("1", "2"):
        make_wheel(wheels, "lib", version, extras=["more"])


def range_that_contradicts(wheels: Path) -> None:
    make_wheel(wheels, "app", "1", requires=["lib>=2,<4"])
    for version in ("1", "2", "3", "4"):
        make_wheel(wheels, "lib", version)


def known_pair(wheels: Path) -> None:
    for name in ("base", "cu13"):
        files = {"nvidia_cutlass_dsl/cutlass.py": f"# {name}\n", f"{name}.py": ""}
        make_wheel(wheels, f"nvidia-cutlass-dsl-libs-{name}", "4.5.1", files)


def unknown_pair(wheels: Path) -> None:
    for name in ("one", "two"):
        make_wheel(wheels, name, "1", {"shared/code.py": f"# {name}\n"})


def newer_parts(wheels: Path) -> None:
    toolkit(wheels)
    make_wheel(wheels, "nvidia-nvvm", "13.5.37", {"nvidia/cu13/nvvm/bin/cicc": "\n"})
    make_wheel(wheels, "nvidia-cuda-runtime", "13.0.96", {"nvidia/cu13/include/cuda.h": "\n"})


def jitlink_user(wheels: Path) -> None:
    toolkit(wheels)
    wants = library(wheels, imports="__nvJitLinkCreate_13_2")
    (wheels / "made.so").unlink()
    make_wheel(wheels, "nvidia-cusparse", "12.7", {"nvidia/cu13/lib/libcusparse.so.12": wants})


def extension(wheels: Path) -> None:
    make_wheel(wheels, "torch", "2.11.0")
    for version, symbol in (("1.0", BLAS_OLD), ("1.1", BLAS_OLD), ("2.0", BLAS_NEW)):
        made = library(wheels, imports=symbol)
        tag = f"py3-none-linux_{platform.machine()}"
        make_wheel(wheels, "my-kernels", version, {"my_kernels/ops.so": made}, requires=["torch"], tag=tag)
    (wheels / "made.so").unlink()


class Case(NamedTuple):
    """Wheels, the profile below `[gpu]`, the codes of its errors, and the lines that the fix removes and adds."""

    wheels: Callable[[Path], None]
    profile: str
    codes: set[str]
    changes: list[str]
    allowed: frozenset[str] = NO_TOOLKIT


CASES = {
    "a pin that another one contradicts": Case(
        pins_that_contradict,
        '[packages]\napp = "1"  # the main thing\nlib = "1"\n',
        {"unsatisfiable", "requirement-broken"},
        ['-lib = "1"', '+lib = "2"'],
    ),
    "a pin that a range contradicts": Case(
        range_that_contradicts,
        '[packages]\napp = "1"\nlib = "1"\n',
        {"unsatisfiable", "requirement-broken"},
        ['-lib = "1"', '+lib = "<4,>=2"'],
    ),
    "a pin in a table": Case(
        pins_that_contradict,
        '[packages]\napp = "1"\nlib = { version = "1", extras = ["more"] }\n',
        {"unsatisfiable", "requirement-broken"},
        ['-lib = { version = "1", extras = ["more"] }', '+lib = { version = "2", extras = ["more"] }'],
    ),
    "a known pair, and a list by its old name": Case(
        known_pair,
        '[packages]\nnvidia-cutlass-dsl-libs-base = "4.5.1"\nnvidia-cutlass-dsl-libs-cu13 = "4.5.1"\n'
        '[install]\nwinners = ["else"]\n',
        {"file-conflict"},
        ['-winners = ["else"]', '+precedence = ["else", "nvidia-cutlass-dsl-libs-cu13"]'],
    ),
    "a pair that envspec knows": Case(
        known_pair,
        '[packages]\nnvidia-cutlass-dsl-libs-base = "4.5.1"\nnvidia-cutlass-dsl-libs-cu13 = "4.5.1"\n',
        {"file-conflict"},
        ["+", "+[install]", '+precedence = ["nvidia-cutlass-dsl-libs-cu13"]'],
    ),
    "a pair that only a person can decide": Case(
        unknown_pair, '[packages]\none = "1"\ntwo = "1"\n', {"file-conflict"}, []
    ),
    "nvcc alone": Case(
        newer_parts,
        '[packages]\nnvidia-cuda-nvcc = "13.2.78"\nnvidia-nvvm = ">=13"\nnvidia-cuda-crt = "*"\n'
        'nvidia-cuda-runtime = "13.0.96"\nnvidia-cuda-nvrtc = "*"\n',
        {"toolkit-mixed", "toolkit-headers", "toolkit-incomplete"},
        [
            '-nvidia-cuda-nvcc = "13.2.78"',
            '-nvidia-nvvm = ">=13"',
            '-nvidia-cuda-crt = "*"',
            '-nvidia-cuda-runtime = "13.0.96"',
            '-nvidia-cuda-nvrtc = "*"',
            "+",
            "+[cuda]",
            '+toolkit = "13.2.1"',
            '+components = ["nvcc", "crt", "nvvm", "cudart", "nvrtc", "cccl", "cupti"]',
        ],
        frozenset(),
    ),
    "a part of the toolkit is pinned": Case(
        newer_parts,
        f'[packages]\nnvidia-cuda-runtime = "13.0.96"\n{CUDA}',
        {"toolkit-headers"},
        ['-nvidia-cuda-runtime = "13.0.96"'],
    ),
    "parts are not asked for": Case(
        toolkit,
        '[packages]\nnvidia-cuda-nvcc = "*"\n[cuda]\ntoolkit = "13.2.1"\ncomponents = ["nvcc", "crt", "nvvm", "cudart"]\n',
        {"toolkit-incomplete"},
        [
            '-components = ["nvcc", "crt", "nvvm", "cudart"]',
            '+components = ["nvcc", "crt", "nvvm", "cudart", "cccl", "nvrtc"]',
        ],
        frozenset(),
    ),
    "nvJitLink is not asked for": Case(
        jitlink_user,
        f'[packages]\nnvidia-cusparse = "12.7"\n{CUDA}',
        {"nvjitlink-older"},
        [f"-components = {SIX}", f'+components = {SIX[:-1]}, "nvjitlink"]'],
    ),
    "a driver that is too old": Case(
        toolkit,
        f'minimum-driver = "570.26"\n[packages]\nnvidia-cuda-nvcc = "*"\n{CUDA}',
        {"driver-minimum"},
        ['-minimum-driver = "570.26"', '+minimum-driver = "580.65.06"'],
    ),
    "an extension for another torch": Case(
        extension,
        '[packages]\ntorch = "2.11.0"\nmy-kernels = "2.0"\n',
        {"torch-abi"},
        ['-my-kernels = "2.0"', '+my-kernels = "1.1"'],
    ),
}


def in_other_words(found: Report) -> Report:
    """The report with every text of every finding replaced; what is data stays."""
    replaced = [
        Finding(
            code=one.code,
            severity=one.severity,
            subject="quelque chose",
            message=f"asks for nothing==9, the set has nothing {number}",
            evidence=("nvidia-cuda-nvcc 99.9.9",),
            dependency_paths=("torch 1.0.0 <- something else",),
            fix="faites autrement",
            remedies=one.remedies,
        )
        for number, one in enumerate(found.findings)
    ]
    return msgspec.structs.replace(found, findings=tuple(replaced))


def check(profile: Profile, allowed: frozenset[str] = NO_TOOLKIT) -> Report:
    return check_profile(
        profile, Uv(offline=True), {"PATH": "/usr/bin:/bin"}, make_progress(), allowed=allowed
    )


def fix(
    path: Path,
    reword: Callable[[Report], Report],
    allowed: frozenset[str] = NO_TOOLKIT,
    seen: list[Report] | None = None,
) -> FixResult:
    uv = Uv(offline=True)

    def checked(profile: Profile) -> Report:
        found = check(profile, allowed)
        if seen is not None:
            seen.append(found)
        return reword(found)

    return fix_profile(path, target_of(read_profile(path), None), uv, Path(sys.executable), checked)


def codes(found: Report) -> set[str]:
    return {one.code for one in found.errors}


@pytest.mark.parametrize("name", CASES)
def test_a_fix_is_made_of_data_and_not_of_words(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (tmp_path / "wheels").mkdir()
    case.wheels(tmp_path / "wheels")
    text = f'# Mine.\n[gpu]\narch = "12.0a"\n{case.profile}{INDEX}'
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    seen: list[Report] = []
    result = fix(path, lambda found: found, case.allowed, seen)
    fixed = path.read_text(encoding="utf-8")
    assert codes(seen[0]) == case.codes
    changed = [line for line in result.difference if re.match(r"[-+](?![-+]{2} )", line)]
    assert changed == case.changes, "\n".join(result.difference)
    assert bool(case.changes) is not bool(result.report.errors)

    path.write_text(text, encoding="utf-8")
    reworded = fix(path, in_other_words, case.allowed)
    assert path.read_text(encoding="utf-8") == fixed
    assert reworded.difference == result.difference


@pytest.mark.parametrize("name", CASES)
def test_the_words_of_a_fix_are_of_its_data(name: str, tmp_path: Path) -> None:
    """What is printed for a remedy names the key, the value or the package that it changes."""
    case = CASES[name]
    (tmp_path / "wheels").mkdir()
    case.wheels(tmp_path / "wheels")
    path = tmp_path / "p.toml"
    path.write_text(f'[gpu]\narch = "12.0a"\n{case.profile}{INDEX}', encoding="utf-8")
    for one in check(read_profile(path), case.allowed).errors:
        assert one.fix, one
        for remedy in one.remedies:
            told = msgspec.to_builtins(remedy)
            name = told.get("key", told.get("package", told.get("nvcc", ""))).rpartition(".")[2]
            assert name.removeprefix("packages.") in one.fix, one


def test_a_base_of_the_profile_keeps_the_rest_of_a_table(tmp_path: Path) -> None:
    """The pin stands in a profile that this one extends: the version is replaced here, the extras stay there."""
    (tmp_path / "wheels").mkdir()
    pins_that_contradict(tmp_path / "wheels")
    base = (
        f'[gpu]\narch = "12.0a"\n[packages]\napp = "1"\nlib = {{ version = "1", extras = ["more"] }}\n{INDEX}'
    )
    (tmp_path / "base.toml").write_text(base, encoding="utf-8")
    path = tmp_path / "p.toml"
    path.write_text('extends = "base.toml"\n', encoding="utf-8")
    result = fix(path, in_other_words)
    assert result.report.errors == ()
    (lib,) = (p for p in read_profile(path).packages if p.name == "lib")
    assert (lib.specifier, lib.extras) == ("==2", ("more",))
    assert (tmp_path / "base.toml").read_text(encoding="utf-8") == base


def test_nothing_is_written_where_no_error_goes_away(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    unknown_pair(tmp_path / "wheels")
    path = tmp_path / "p.toml"
    text = f'[gpu]\narch = "12.0a"\n[packages]\none = "1"\ntwo = "1"\n{INDEX}'
    path.write_text(text, encoding="utf-8")
    before = path.stat()
    assert codes(fix(path, in_other_words).report) == {"file-conflict"}
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_profile_of_the_installed_envspec_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f'[gpu]\narch = "12.0a"\n[packages]\none = "1"\n{INDEX}', encoding="utf-8")
    monkeypatch.setattr("envspec.check.fix.is_installed", lambda profile: profile == path)
    with pytest.raises(UsageError, match="is not changed"):
        fix(path, in_other_words)
