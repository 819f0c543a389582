"""Running probes beside each other: each in a session of its own, so that what ends it early ends its compilers, too."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from envspec.data.jit_variables import Kind, consumers
from envspec.probe.rows import ProbeRow

_GIB = 1 << 30
_PAUSE = 0.02


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where probes run: the environment's Python and variables, a directory that is thrown away, and how much at a time.

    `slots` counts compilers, each of which is given `memory_per_slot` bytes.
    """

    python: Path
    environment: Mapping[str, str]
    work: Path
    slots: int
    memory_per_slot: int


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A probe that has ended. `code` is negative for a signal; `timed_out` if it was ended for its time."""

    row: ProbeRow
    code: int
    seconds: float
    log: Path
    timed_out: bool = False


class _Running(msgspec.Struct, kw_only=True):
    row: ProbeRow
    process: subprocess.Popen[bytes]
    since: float
    log: Path
    slots: int


def run_all(
    rows: Sequence[ProbeRow], setting: Setting, on_change: Callable[[list[str]], None] = lambda names: None
) -> Iterator[Ended]:
    """Run the probes, the longest first, and yield each as it ends. `on_change` gets the names that run now."""
    waiting = sorted(rows, key=lambda row: -row.seconds)
    running: list[_Running] = []
    try:
        while waiting or running:
            for row in list(waiting):
                free = setting.slots - sum(one.slots for one in running)
                # What needs more than there is gets all of it, alone.
                if slots_of(row, setting) <= free or not running:
                    waiting.remove(row)
                    running.append(_start(row, setting))
                    on_change([one.row.name for one in running])
            time.sleep(_PAUSE)
            for one in list(running):
                ended = _look(one)
                if ended is not None:
                    running.remove(one)
                    on_change([other.row.name for other in running])
                    yield ended
    finally:
        for one in running:
            _end(one.process)


def slots_of(row: ProbeRow, setting: Setting) -> int:
    """How many compilers' worth of the machine a probe takes: by its processes, or by its memory if that is more."""
    by_memory = -(-row.memory * _GIB // setting.memory_per_slot)
    return max(1, min(setting.slots, max(row.jobs, by_memory)))


def _start(row: ProbeRow, setting: Setting) -> _Running:
    home = setting.work / row.name
    home.mkdir(parents=True)
    log = setting.work / f"{row.name}.log"
    slots = slots_of(row, setting)
    environment = {
        **setting.environment,
        **{one.variable: str(home / one.value) for one in consumers() if one.kind is Kind.CACHE_DIR},
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "MAX_JOBS": str(min(row.jobs, slots)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(setting.python), str(row.path)],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return _Running(row=row, process=process, since=time.monotonic(), log=log, slots=slots)


def _look(one: _Running) -> Ended | None:
    code = one.process.poll()
    seconds = time.monotonic() - one.since
    timed_out = code is None and seconds > one.row.timeout
    if timed_out:
        _end(one.process)
        code = one.process.returncode
    if code is None:
        return None
    return Ended(row=one.row, code=code, seconds=seconds, log=one.log, timed_out=timed_out)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
