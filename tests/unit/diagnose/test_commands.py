"""`envspec diagnose LOG --out DIR`: which command fixes it, in this environment."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from envspec.diagnose import diagnose
from envspec.diagnose.environment import EnvironmentFacts

ABI = b"ImportError: /x/sgl_kernel/common_ops.abi3.so: undefined symbol: _ZNK3c106SymInt22maybe_as_int_slow_pathEv\n"
NO_SPACE = b"OSError: [Errno 28] No space left on device\n"
GRAPH = b"RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
BUILT = {"torch": "2.11.0", "sglang-kernel": "0.4.2.post2"}


def _fix(log: bytes, facts: EnvironmentFacts) -> str:
    cause = diagnose(io.BytesIO(log), facts=facts).cause
    assert cause is not None
    return f"{cause.meaning} | {cause.fix}"


def test_what_was_changed_after_the_build_is_fixed_by_repair() -> None:
    said = _fix(ABI, EnvironmentFacts(packages={**BUILT, "torch": "2.12.0"}, built=BUILT))
    assert "Changed after the build: torch was 2.11.0, is 2.12.0." in said
    assert said.endswith("envspec repair fixes this.")


def test_what_was_removed_after_the_build_is_fixed_by_repair() -> None:
    said = _fix(ABI, EnvironmentFacts(packages={"sglang-kernel": "0.4.2.post2"}, built=BUILT))
    assert "torch 2.11.0 is gone" in said


def test_an_untouched_environment_may_not_be_the_one_of_the_log() -> None:
    said = _fix(ABI, EnvironmentFacts(packages=BUILT, built=BUILT))
    assert "make sure that the process runs inside it" in said
    assert said.endswith("envspec check --fix PROFILE, then envspec build PROFILE.")


def test_a_log_that_is_known_to_be_of_this_environment() -> None:
    said = _fix(ABI, EnvironmentFacts(packages=BUILT, built=BUILT, inside=True))
    assert "make sure" not in said
    assert "(envspec verify shows it), run envspec repair. If not:" in said


def test_pins_that_were_never_built_are_fixed_by_check() -> None:
    said = _fix(ABI, EnvironmentFacts(packages=BUILT))
    assert "make sure" not in said
    assert "envspec check --fix PROFILE" in said


def test_what_no_command_fixes_is_said_to_be_so() -> None:
    said = _fix(NO_SPACE, EnvironmentFacts(packages=BUILT, built=BUILT))
    assert said.endswith("Neither envspec repair, envspec check --fix nor a new build changes this.")
    assert "envspec repair" not in _fix(NO_SPACE, EnvironmentFacts())


def test_the_architecture_is_named_where_it_matters() -> None:
    said = _fix(GRAPH, EnvironmentFacts(packages=BUILT, built=BUILT, gpu_arch="12.0a"))
    assert "it is built for GPUs of architecture 12.0a" in said


def _run(*arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "envspec", "diagnose", *arguments], input=text, capture_output=True, timeout=60
    )


def test_the_verb(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(NO_SPACE)
    done = _run(str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"cause[disk-full]\n  line 1: OSError: [Errno 28]")
    assert _run("-", "--json", text=NO_SPACE).stdout.startswith(b'{\n  "version": 1,')


@pytest.mark.parametrize("arguments", [(), ("nothere.log",), (".",), ("-", "--out", "nothere"), ("a", "b")])
def test_bad_calls_of_the_verb(arguments: tuple[str, ...]) -> None:
    done = _run(*arguments, text=NO_SPACE)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_file_that_cannot_be_read_is_named() -> None:
    assert _run("nothere.log").stderr == (
        b"error[log-unreadable]: cannot read nothere.log: No such file or directory\n"
        b"  fix: name a file, or - for standard input\n"
        b"  more: envspec explain log-unreadable\n"
    )
