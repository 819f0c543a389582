"""An output directory as a whole: may this path become one, making it, and opening one that was built before."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path

from envspec.fs import names_in, sync_directory, write_synced
from envspec.output.generations import STATE, Generation, Output
from envspec.report.errors import ExternalError, UsageError
from envspec.report.os_errors import DISK_FULL, explain_os_error

_OWNER_TEXT = "This directory is made and managed by envspec. See envspec.json beside it.\n"


def create(root: Path) -> Output:
    """Return the output directory at `root`, made if it is not there. Never takes over what envspec did not make.

    Raises UsageError `output-*` for a path that cannot be an output, ExternalError `output-unwritable`.
    """
    validate(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        output = Output(root.resolve())
        owner = output.state / "owner"
        # The owner first: whatever happens then, the directory is known as ours.
        for directory in (output.state, output.generations_dir, output.toolchains_dir, output.jit_dir):
            if directory.is_symlink():
                raise UsageError(
                    "output-link",
                    f"{directory} is a link, which envspec does not make",
                    fix="remove the link, or name another --out",
                )
            directory.mkdir(exist_ok=True)
            if not owner.exists():
                write_synced(owner, _OWNER_TEXT.encode())
                sync_directory(root)
        if not os.access(output.state, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(output.state))
    except OSError as error:
        raise _unwritable(root, error) from None
    return output


def validate(root: Path) -> None:
    """Refuse what cannot become an output, before anything is done for it. Raises what `create` raises."""
    _check_path(root)
    try:
        _check_foreign(root)
    except OSError as error:
        raise _unwritable(root, error) from None


def _unwritable(root: Path, error: OSError) -> ExternalError:
    if error.errno in DISK_FULL:
        return explain_os_error(error)
    return ExternalError(
        "output-unwritable",
        f"cannot write to {root}: {error.strerror}",
        where=str(error.filename or root),
        fix="name a directory that you may write to: --out DIR",
    )


def existing(root: Path) -> Output:
    """Return an output that was built before. Raises UsageError `output-missing`."""
    output = Output(root.resolve())
    if not (output.state / "owner").is_file():
        raise UsageError(
            "output-missing",
            f"{root} is not an environment that envspec built",
            fix="build it first: envspec build PROFILE, or name another --out",
        )
    return output


def _check_path(root: Path) -> None:
    text = str(root.absolute())
    if ":" in text or "\n" in text:
        raise UsageError(
            "output-path",
            f"{str(root)!r} holds a colon or a line break, which no PATH can",
            where="--out",
            fix="name another directory",
        )
    if root.is_symlink():
        raise UsageError(
            "output-link",
            f"{root} is a link",
            where="--out",
            why="envspec writes only where it was told to, not where a link may lead tomorrow",
            fix=f"name the directory itself: --out {shlex.quote(os.path.realpath(root))}",
        )


def _check_foreign(root: Path) -> None:
    if not os.path.lexists(root):
        return
    if not root.is_dir():
        raise UsageError(
            "output-not-directory", f"{root} is a file", where="--out", fix="name a directory: --out DIR"
        )
    names = names_in(root)
    owner = root / STATE / "owner"
    if names and not (owner.is_file() and not (root / STATE).is_symlink()):
        if names == (STATE,) and set(names_in(root / STATE)) <= {".owner.new"}:
            return  # it was being made, and that was cut short
        raise UsageError(
            "output-foreign",
            f"{root} is not empty and was not made by envspec",
            where="--out",
            why=f"it holds {', '.join(names[:4])}" + (" ..." if len(names) > 4 else ""),
            fix="name another directory: --out DIR; envspec deletes nothing that it did not make",
        )


def current_generation(out: Path) -> tuple[Output, Generation]:
    """Return an output and its current generation. Raises UsageError `output-missing` or `output-unbuilt`."""
    output = existing(out)
    generation = output.current()
    if generation is None:
        raise unbuilt(out)
    return output, generation


def unbuilt(out: Path) -> UsageError:
    """Return the error for an output in which no build was ever finished."""
    return UsageError(
        "output-unbuilt", f"{out} holds no finished environment", fix="build it: envspec build PROFILE"
    )
