"""The one root of every error a user can cause or meet, and the exit codes they end in.

An error says what is wrong, where, why it matters and how to fix it, in this order. It is raised where
the facts are known and rendered once, in `render.py`. Anything else that reaches the command line is a
fault of envspec itself and is reported as such.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Names the exit codes. They are an interface: scripts look at them."""

    OK = 0
    FINDINGS = 1
    """envspec did its work and the answer is no: errors found, or a stage of a build failed."""
    USAGE = 2
    """The call or the profile is wrong."""
    EXTERNAL = 3
    """An external failure: network, disk, permissions; nothing that a change of the profile could help."""
    INTERNAL = 4
    """A fault of envspec itself."""
    INTERRUPTED = 130


class EnvspecError(Exception):
    """Tells the user what went wrong.

    `code` is stable and names the kind; `what` is one sentence without a final stop; `where` is a file,
    a dotted key or a path; `why` may hold several lines (the words of uv or of a compiler, as they stand);
    `fix` tells what to do next; `log` is a file with more of what was done before, if there is one.
    """

    exit: int = Exit.FINDINGS

    def __init__(
        self,
        code: str,
        what: str,
        *,
        where: str = "",
        why: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.where = where
        self.why = why
        self.fix = fix
        self.log = ""


class UsageError(EnvspecError):
    """The call or the profile is wrong: correct it and run again."""

    exit = Exit.USAGE


class ExternalError(EnvspecError):
    """The machine or the network did not allow it: the same call may succeed later or elsewhere."""

    exit = Exit.EXTERNAL


class StageError(EnvspecError):
    """A stage of the build did its work and found that the environment does not work."""


def error_words(error: EnvspecError) -> str:
    """Return an error in one line, for places that only mention it."""
    detail = error.why.splitlines()
    return f"{error.what} ({error.code})" + (f": {detail[-1].strip()}" if detail else "")


class InternalError(EnvspecError):
    """Describes a fault of envspec itself, of which the traceback on standard error tells more."""

    exit = Exit.INTERNAL

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            "internal-error",
            f"envspec failed with {type(error).__name__}, which is a fault of its own",
            why=str(error),
            fix="report it with the traceback on standard error and the command that you typed",
        )


class Interrupted(EnvspecError):
    """Somebody ended the command: the user with Ctrl-C, or another process with a signal, whose number is given."""

    def __init__(self, signal_number: int | None = None) -> None:
        super().__init__(
            "interrupted",
            "interrupted" if signal_number is None else f"ended by signal {signal_number}",
            why="the environment that was there before is untouched",
        )
        self.by_user = signal_number is None
        self.exit = Exit.INTERRUPTED if signal_number is None else 128 + signal_number


class Terminated(BaseException):
    """Somebody ended envspec (SIGTERM, SIGHUP): like Ctrl-C, it cleans up on its way out and nothing may stop it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number
        self.exit = 128 + signal_number
