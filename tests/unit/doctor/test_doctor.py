"""doctor as a whole: order, guard, calls, hostile machines, and that it only reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from envspec.cli.doctor import examine, split_words
from envspec.cli.main import cli
from envspec.data.architectures import Arch
from envspec.data.gpus import gpu_reported
from envspec.doctor import run_checks
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.driver import loaded_driver
from envspec.host.machine import Host
from envspec.report.errors import UsageError
from envspec.report.findings import Finding, Severity
from envspec.report.rules import Rule
from tests.support.machine import Machine, healthy


def test_slow_checks_come_last() -> None:
    slow = [row.slow for row in CHECKS.all()]
    assert slow == sorted(slow) and any(slow)


def test_names_and_summaries() -> None:
    for row in CHECKS.all():
        assert row.code.startswith(("host-", "env-"))
        assert row.summary.endswith(".")


def test_a_check_that_fails_is_unknown_and_the_next_one_runs(tmp_path: Path) -> None:
    def broken(host: Host, wanted: Wanted) -> Iterator[Finding]:
        if host:
            raise ZeroDivisionError("of all things")
        yield from ()

    def fine(host: Host, wanted: Wanted) -> Iterator[Finding]:
        yield Finding(code="y", severity=Severity.NOTE, subject="y", message="fine")

    rules = [Rule(code, "It holds.", (Host, Wanted), judge) for code, judge in (("x", broken), ("y", fine))]
    found = list(run_checks(Machine(tmp_path), Wanted(), rules))
    assert [(f.code, f.severity, f.message, f.evidence) for f in found] == [
        (
            "x",
            Severity.UNKNOWN,
            "not decided: the check itself failed (ZeroDivisionError)",
            ("of all things",),
        ),
        ("y", Severity.NOTE, "fine", ()),
    ]


def test_an_empty_machine_crashes_no_check(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    found = list(run_checks(machine, Wanted(out="/out", uv=machine.uv)))
    assert not [f for f in found if "the check itself failed" in f.message]


@given(st.binary(max_size=300))
def test_any_content_of_the_files_crashes_no_check(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    machine = Machine(tmp_path_factory.mktemp("m"))
    for path in (
        "/proc/driver/nvidia/version",
        "/proc/driver/nvidia/gpus/0/information",
        "/proc/self/mounts",
        "/proc/self/status",
        "/proc/self/limits",
        "/proc/meminfo",
        "/etc/ld.so.cache",
        "/usr/lib/libc.so.6",
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
    ):
        machine.put(path, content)
    found = list(
        run_checks(machine, Wanted(out="/out", uv=machine.uv), [r for r in CHECKS.all() if not r.slow])
    )
    assert not [f for f in found if "the check itself failed" in f.message]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n", "550.54.14"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n", "580.95.05"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95\n", "580.95"),
        ("something else\n", None),
    ],
)
def test_the_driver_by_the_kernels_words(tmp_path: Path, text: str, version: str | None) -> None:
    assert loaded_driver(Machine(tmp_path).put("/proc/driver/nvidia/version", text)) == version


@pytest.mark.parametrize(
    ("model", "capability"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (12, 0)),
        ("NVIDIA GeForce RTX 5090", (12, 0)),
        ("NVIDIA GeForce RTX 4090", (8, 9)),
        ("NVIDIA RTX 6000 Ada Generation", (8, 9)),
        ("NVIDIA H200", (9, 0)),
        ("NVIDIA H100 80GB HBM3", (9, 0)),
        ("NVIDIA GB10", (12, 1)),
        ("NVIDIA L4", (8, 9)),
        ("Tesla T4", (7, 5)),
        ("NVIDIA T400", None),
    ],
)
def test_the_architecture_by_the_models_name(model: str, capability: tuple[int, int] | None) -> None:
    known = gpu_reported(model)
    assert (known.capability if known else None) == capability


def test_what_runs_on_what() -> None:
    assert Arch(12, 0, "a").runs_on((12, 0)) and not Arch(12, 0, "a").runs_on((12, 1))
    assert Arch(12, 0, "f").runs_on((12, 1)) and Arch(8, 0).runs_on((8, 6)) and not Arch(8, 6).runs_on((8, 0))
    assert not Arch(9, 0).runs_on((10, 0))


def test_links_lead_below_the_root(tmp_path: Path) -> None:
    machine = Machine(tmp_path).link("/a/b", "/c").put("/c/file", "x").link("/loop", "loop")
    assert machine.real("/a/b/file") == "/c/file"
    assert machine.text("/a/b/file") == "x"
    assert machine.real("/loop") == "/loop" and not machine.exists("/loop")
    assert machine.real("/../../etc") == "/etc"


def test_words_of_the_call() -> None:
    assert split_words(("p.toml", "host-gpu")) == ("p.toml", ("host-gpu",))
    assert split_words(("host-gpu", "env-cuda")) == (None, ("host-gpu", "env-cuda"))
    assert split_words(()) == (None, ())
    with pytest.raises(UsageError, match="no check 'host-gup'") as caught:
        split_words(("p.toml", "host-gup"))
    assert caught.value.fix == "did you mean host-gpu?"


def test_only_the_named_checks_run(tmp_path: Path) -> None:
    machine = healthy(tmp_path, LD_LIBRARY_PATH=":/x/stubs")
    codes = {f.code for f in examine(None, ("env-stubs",), Path("out"), machine).findings}
    assert codes == {"env-stubs"}


def test_the_list() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--list"])
    assert [line.split()[0] for line in result.output.splitlines()] == [row.code for row in CHECKS.all()]


def _tree(root: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*"))


def test_it_writes_nothing(tmp_path: Path) -> None:
    machine = healthy(tmp_path)
    before = _tree(tmp_path)
    examine(None, (), Path("/out"), machine)
    assert _tree(tmp_path) == before


def test_the_verb_on_this_machine(tmp_path: Path) -> None:
    # What measures coverage imports modules of its own into every Python that it is told to start in.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "envspec", "doctor", "rtx-pro-6000", "--json", "--out", "out"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, env=env,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["version"] == 1 and found["command"] == "doctor"
    assert done.returncode == int(any(f["severity"] == "error" for f in found["findings"]))
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert not imported & {"torch", "requests", "urllib3", "socket", "rich"}
    assert list(tmp_path.iterdir()) == []
