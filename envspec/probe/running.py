"""Running probes beside each other: each in a session of its own, so that what ends it early ends its compilers, too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from envspec.data.jit_variables import Kind, consumers
from envspec.host.commands import Command, Running, start, stop_all
from envspec.probe.rows import ProbeRow

_GIB = 1 << 30
_PAUSE = 0.02


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Says where probes run: the environment's Python and variables, a directory that is thrown away, and how much at a time.

    `slots` counts compilers, each of which is given `memory_per_slot` bytes.
    """

    python: Path
    environment: Mapping[str, str]
    work: Path
    slots: int
    memory_per_slot: int


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a probe that has ended. `code` is negative for a signal; `timed_out` if it was ended for its time."""

    row: ProbeRow
    code: int
    seconds: float
    log: Path
    timed_out: bool = False


class _Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A probe that runs, and how many compilers' worth of the machine it takes."""

    row: ProbeRow
    program: Running
    log: Path
    slots: int


def run_all(
    rows: Sequence[ProbeRow], setting: Setting, on_change: Callable[[list[str]], None] = lambda names: None
) -> Iterator[Ended]:
    """Run the probes, the longest first, and yield each as it ends. `on_change` gets the names that run now."""
    waiting = sorted(rows, key=lambda row: -row.seconds)
    running: list[_Probe] = []
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
        stop_all(one.program for one in running)


def slots_of(row: ProbeRow, setting: Setting) -> int:
    """Return how many compilers' worth of the machine a probe takes: by its processes, or by its memory if that is more."""
    by_memory = -(-row.memory * _GIB // setting.memory_per_slot)
    return max(1, min(setting.slots, max(row.jobs, by_memory)))


def _start(row: ProbeRow, setting: Setting) -> _Probe:
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
    command = Command(arguments=(str(setting.python), str(row.path)), environment=environment, directory=home)
    return _Probe(row=row, program=start(command, log), log=log, slots=slots)


def _look(one: _Probe) -> Ended | None:
    timed_out = one.program.seconds > one.row.timeout
    done = one.program.poll()
    if done is None and timed_out:
        done = one.program.stop(timed_out=True)
    if done is None:
        return None
    return Ended(row=one.row, code=done.code, seconds=done.seconds, log=one.log, timed_out=done.timed_out)
