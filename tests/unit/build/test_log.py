"""The log of a build: what is in it, that it is bounded, and that no secret is."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from envspec.build import log as build_log_module
from envspec.build.log import BuildLog, build_log
from envspec.host.commands import Command, run
from envspec.output.generations import Output
from envspec.report.errors import ExternalError, StageError, Terminated
from envspec.report.findings import FailedReport, Finding, error, report
from envspec.report.progress import Stage


class Quiet:
    """A display that shows nothing."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        yield Stage(lambda text: None)

    def note(self, what: str | Finding) -> None:
        pass


@pytest.fixture
def output(tmp_path: Path) -> Output:
    (tmp_path / "out/.envspec").mkdir(parents=True)
    return Output(tmp_path / "out")


def kept(output: Output) -> list[str]:
    return (output.root / ".envspec/last-build.log").read_text().splitlines()


def test_stages_notes_and_commands_in_order(output: Output) -> None:
    environment = {**os.environ, "A_TOKEN": "abcdefgh"}
    with build_log(environment, Quiet()) as (log, progress):
        with progress.stage("lock") as stage:
            stage.result = "6 packages"
        progress.note("a note\nof two lines with abcdefgh")
        run(Command(arguments=("sh", "-c", "echo said; exit 3"), environment=environment))
        assert log.save(output)
    text = kept(output)
    assert text[0].startswith("envspec ") and text[1].startswith("$ ")
    assert text[3:5] == ["== lock", "== lock: 6 packages (0.0 s)"]
    assert text[5:7] == ["a note", "of two lines with ***"]
    assert "A_TOKEN=***" in text[7] and text[8] == "    | said" and text[9].endswith("] exit 3 after 0.0 s")


def test_an_error_names_the_log_and_is_in_it(output: Output) -> None:
    log = BuildLog({})
    with pytest.raises(StageError) as caught, log.kept_in(output, Path("out")):
        raise StageError("smoke-compile", "nvcc did not compile a kernel", why="its words")
    assert caught.value.log == "out/.envspec/last-build.log"
    assert "error[smoke-compile]: nvcc did not compile a kernel" in kept(output) and "  its words" in kept(
        output
    )


def test_a_check_that_failed_is_in_it_with_what_it_found(output: Output) -> None:
    found = report("check", "p.toml", [error("toolkit-mixed", "cuda", "nvvm does not belong to nvcc")])
    with pytest.raises(FailedReport), BuildLog({}).kept_in(output, Path("out")):
        raise FailedReport("check-failed", "the locked set cannot work", found, where="p.toml", fix="")
    codes = [line.partition(":")[0] for line in kept(output) if line.startswith("error")]
    assert codes == ["error[toolkit-mixed]", "error[check-failed]"]


def test_what_the_operating_system_refused_is_told_in_the_same_way(output: Output) -> None:
    with pytest.raises(ExternalError) as caught, BuildLog({}).kept_in(output, Path("out")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (caught.value.code, caught.value.where) == ("disk-full", str(output.root))
    assert caught.value.log and "error[disk-full]: the disk is full" in kept(output)


@pytest.mark.parametrize("ended", [KeyboardInterrupt(), Terminated(15), ZeroDivisionError("of all things")])
def test_an_interrupted_build_leaves_its_log(output: Output, ended: BaseException) -> None:
    with pytest.raises(type(ended)), BuildLog({}).kept_in(output, Path("out")):
        raise ended
    fault = isinstance(ended, ZeroDivisionError)
    assert kept(output)[-1] == (f"a fault of envspec: {ended!r}" if fault else "interrupted")


def test_a_log_that_cannot_be_written_is_no_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(StageError) as caught, BuildLog({}).kept_in(Output(tmp_path / "gone"), Path("gone")):
        raise StageError("x", "y")
    assert caught.value.log == ""


def test_the_first_and_the_last_lines_of_a_long_log_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_log_module, "_FIRST", 400)
    monkeypatch.setattr(build_log_module, "_LAST", 100)
    log = BuildLog({})
    for number in range(1000):
        log.write(f"line {number}")
    lines = log.text.splitlines()
    assert lines[3] == "line 0" and lines[-1] == "line 999" and len(log.text) < 550
    gap = next(number for number, line in enumerate(lines) if line.endswith("lines are left out]"))
    left_out = int(lines[gap].strip("[]").split()[0])
    assert gap + left_out + (len(lines) - gap - 1) == 1003


def test_what_steers_terminals_is_not_in_it() -> None:
    log = BuildLog({})
    log.write("a\033[2Jb")
    assert "a\N{REPLACEMENT CHARACTER}[2Jb" in log.text
