"""The display of a terminal: finished stages stay, what fails says so, and no text takes more than its line."""

from __future__ import annotations

import io
import re

import pytest

from envspec.cli.live_progress import LiveProgress
from envspec.cli.progress import PlainProgress, make_progress


class Terminal(io.StringIO):
    """A terminal of 40 columns that keeps what it is sent."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What it was sent, without what moves the cursor and colours the text."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", self.getvalue()).replace("\r", "\n")
        return [line.strip() for line in plain.splitlines() if line.strip()]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    return Terminal()


def test_a_terminal_gets_the_live_display_and_a_pipe_lines(terminal: Terminal) -> None:
    assert isinstance(make_progress(terminal), LiveProgress)
    assert isinstance(make_progress(io.StringIO()), PlainProgress)


def test_a_stage_ends_with_its_result(terminal: Terminal) -> None:
    progress = make_progress(terminal)
    with progress.stage("lock") as stage:
        stage.detail("resolving")
        progress.note("a note that stays")
        stage.result = "190 packages"
    shown = " ".join(terminal.lines())
    assert "a note that stays" in shown
    assert re.search(r"✓ lock +190 packages \(\d\.\d s\)", shown), shown


def test_a_stage_that_fails_says_so(terminal: Terminal) -> None:
    with pytest.raises(KeyError), make_progress(terminal).stage("check"):
        raise KeyError
    assert re.search(r"✗ check +failed after \d\.\d s", " ".join(terminal.lines()))


def test_details_of_others_stay_in_their_line(terminal: Terminal) -> None:
    with make_progress(terminal).stage("install") as stage:
        stage.detail("evil\x1b]0;title\x07\nnext " + "x" * 500)
        stage.result = "done"
    assert "\x1b]0;" not in terminal.getvalue() and "\x07" not in terminal.getvalue()
    assert max(map(len, terminal.lines())) <= 40
