"""Running programs that print too much, hang, start others, or cannot be started; and who is told of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envspec.host import commands
from envspec.host.commands import Command, Completed, run, start, stop_all, traced


def shell(script: str, directory: Path | None = None) -> Command:
    return Command(arguments=("sh", "-c", script), environment=os.environ, directory=directory)


def lives(pid: int, seconds: float = 5) -> bool:
    """Whether a process still runs after some time; a killed one may have to be taken off a processor first."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.02)
    return True


def number_in(file: Path) -> int:
    for _ in range(250):
        if file.exists() and file.read_text().strip():
            return int(file.read_text())
        time.sleep(0.02)
    raise AssertionError(f"{file} was not written")


def test_both_streams_and_the_exit_code() -> None:
    heard: list[str] = []
    done = run(shell("echo out; echo one >&2; printf two >&2; exit 7"), on_line=heard.append)
    assert (done.code, done.out, done.err, done.timed_out) == (7, b"out\n", b"one\ntwo", False)
    assert heard == ["one", "two"]
    assert run(shell("echo out; echo err >&2"), merged=True).out == b"out\nerr\n"
    assert run(shell("kill -9 $$")).code == -9


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(Command(arguments=(str(tmp_path / "none"),), environment={}))
    with pytest.raises(FileNotFoundError):
        run(Command(arguments=("true",), environment=os.environ, directory=tmp_path / "none"))


def test_it_gets_no_input_and_only_the_descriptors_that_are_named(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        look = f"test -e /proc/self/fd/{file.fileno()} && echo open || echo closed; cat"
        assert run(shell(look), seconds=20).out == b"closed\n"
        named = Command(arguments=("sh", "-c", look), environment=os.environ, inherit_fds=(file.fileno(),))
        assert run(named, seconds=20).out == b"open\n"


def test_what_is_printed_is_bounded_and_read_to_its_end() -> None:
    done = run(shell("head -c 3000000 /dev/zero; echo end >&2"), limit=1000)
    assert (len(done.out), done.omitted, done.err, done.code) == (1000, 2_999_000, b"end\n", 0)


def test_a_long_line_is_told_in_pieces() -> None:
    heard: list[str] = []
    run(shell("head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2"), on_line=heard.append)
    assert max(map(len, heard)) <= 3 * (64 << 10) and sum(map(len, heard)) == 300_000


def test_the_time_limit_ends_all_that_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run(shell(f"echo before; sleep 60 & echo $! > '{tmp_path}/pid'; wait"), seconds=0.5)
    assert done.timed_out and done.code == -signal.SIGTERM and done.out == b"before\n"
    assert time.monotonic() - started < 5
    assert not lives(number_in(tmp_path / "pid"))


def test_who_does_not_end_when_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "GRACE", 0.3)
    stubborn = f"trap '' TERM; echo $$ > '{tmp_path}/pid'; while :; do sleep 0.05; done"
    done = run(shell(stubborn), seconds=0.5)
    assert done.timed_out and done.code == -signal.SIGKILL
    assert not lives(number_in(tmp_path / "pid"))


def test_what_a_program_leaves_behind_neither_holds_the_pipe_nor_lives_on(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run(shell(f"sleep 60 & echo $! > '{tmp_path}/pid'; echo done"))
    assert done.out == b"done\n" and done.code == 0 and time.monotonic() - started < 5
    assert not lives(number_in(tmp_path / "pid"))


def test_a_daemon_in_a_session_of_its_own_does_not_hold_it_up(tmp_path: Path) -> None:
    started = time.monotonic()
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 30' & while ! test -s '{tmp_path}/pid'; do sleep 0.01; done"
    assert run(shell(script)).code == 0
    assert time.monotonic() - started < 10
    os.kill(number_in(tmp_path / "pid"), signal.SIGKILL)


def test_an_error_in_the_listener_ends_the_program(tmp_path: Path) -> None:
    def fails(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(shell(f"echo $$ > '{tmp_path}/pid'; echo now >&2; sleep 60"), on_line=fails)
    assert not lives(number_in(tmp_path / "pid"))


def test_an_interrupted_envspec_leaves_nothing_running(tmp_path: Path) -> None:
    """Ctrl-C reaches this process alone, since what it runs has a session of its own."""
    program = (
        "import os; from envspec.host.commands import Command, run;"
        f"run(Command(arguments=('sh', '-c', 'sleep 60 & echo $! > {tmp_path}/pid; wait'), environment=os.environ))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    pid = number_in(tmp_path / "pid")
    time.sleep(0.5)  # the program may have written before envspec knows that it was started
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert not lives(pid)


def test_programs_side_by_side(tmp_path: Path) -> None:
    quick = start(shell("echo quick"), tmp_path / "quick.log")
    slow = [start(shell(f"echo $$ > '{tmp_path}/{n}'; sleep 60"), tmp_path / f"{n}.log") for n in range(2)]
    pids = [number_in(tmp_path / str(n)) for n in range(2)]
    while (done := quick.poll()) is None:
        time.sleep(0.01)
    assert done.code == 0 and (tmp_path / "quick.log").read_bytes() == b"quick\n"
    assert all(one.poll() is None for one in slow)
    stop_all(slow)
    assert not any(lives(pid) for pid in pids)


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[str, int, object]] = []

    def started(self, number: int, command: Command) -> None:
        self.lines.append(("started", number, command.arguments[-1]))

    def ended(self, number: int, command: Command, completed: Completed) -> None:
        self.lines.append(("ended", number, completed.code))


def test_a_trace_is_told_of_every_command_once(tmp_path: Path) -> None:
    told, also = Told(), Told()
    with traced(told):
        run(shell("exit 1"))
        with traced(also):
            one = start(shell("sleep 60"), tmp_path / "log")
            run(shell("exit 2"), seconds=20)
            one.stop(timed_out=True)
        with pytest.raises(FileNotFoundError):
            run(Command(arguments=("/none",), environment={}))
    run(shell("exit 3"))
    first = told.lines[0][1]
    assert told.lines == [
        ("started", first, "exit 1"),
        ("ended", first, 1),
        ("started", first + 1, "sleep 60"),
        ("started", first + 2, "exit 2"),
        ("ended", first + 2, 2),
        ("ended", first + 1, -signal.SIGTERM),
        ("started", first + 3, "/none"),
    ]
    assert also.lines == told.lines[2:6]
