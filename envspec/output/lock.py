"""The lock of an output directory: who writes into it, and who waits."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from envspec.fs import write_synced
from envspec.output.generations import Output
from envspec.report.errors import ExternalError


@contextlib.contextmanager
def locked(output: Output, waiting: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock of an output; `waiting` is told who holds it if somebody else does.

    Gives the lock's descriptor. Programs that write into the output inherit it: if envspec is killed, the lock stays
    held until the last of them has ended, so that none writes into what the next build removes.

    Raises ExternalError `output-unwritable`.
    """
    with _open_lock(output) as handle:
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting(_holder(output))
                fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            raise _cannot_lock(output, error) from None
        try:
            with contextlib.suppress(OSError):  # it only tells others whom they wait for
                write_synced(_holder_file(output), _this_process())
            yield handle
        finally:
            with contextlib.suppress(OSError):
                _holder_file(output).unlink()


@contextlib.contextmanager
def _open_lock(output: Output) -> Iterator[int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(output.state / "lock", flags, 0o644)
    except OSError as error:
        raise _cannot_lock(output, error) from None
    try:
        yield handle
    finally:
        os.close(handle)


def _cannot_lock(output: Output, error: OSError) -> ExternalError:
    return ExternalError(
        "output-unwritable", f"cannot lock {output.root}: {error.strerror}", where=str(output.state)
    )


def _holder_file(output: Output) -> Path:
    return output.state / "holder"


def _this_process() -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}).encode()


def _holder(output: Output) -> str:
    """Say who holds the lock. The text comes from a file that anybody may have written."""
    try:
        row = json.loads(_holder_file(output).read_bytes()[:4096])
        pid, host = int(row["pid"]), str(row["host"])
        since = time.strftime("%H:%M:%S", time.localtime(int(row["since"])))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return "another envspec"
    who = f"process {pid} on {host[:64]!r} since {since}"
    if host == socket.gethostname() and not Path(f"/proc/{pid}").exists():
        return f"what is still running of {who}, which was killed"
    return who
