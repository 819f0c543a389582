"""Files: write in one step, hash, walk, remove. No link is ever followed to something to write or to remove."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from envspec.report.errors import EnvspecError


def names_in(directory: Path) -> tuple[str, ...]:
    """Return the names in a directory, sorted; none if it does not exist. Raises OSError."""
    try:
        return tuple(sorted(entry.name for entry in os.scandir(directory)))
    except FileNotFoundError:
        return ()


def link_to(at: Path, target: str) -> None:
    """Make `at` a link to `target` in one step. A file or directory of somebody else in that place is left alone."""
    if at.is_symlink():
        if str(at.readlink()) == target:
            return
    elif os.path.lexists(at):
        raise EnvspecError(
            "output-foreign",
            f"{at} is in the way and was not made by envspec",
            where=str(at),
            fix="move it away and build again",
        )
    temporary = at.with_name(f".{at.name}.new")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(target)
    temporary.replace(at)


def remove_tree(path: Path) -> None:
    """Remove a tree that envspec made. A link or a file in its place is removed as such."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path, onerror=_open_and_remove)


def _open_and_remove(remove: Callable[[str], object], path: str, why: object) -> None:
    """A directory that somebody made read-only keeps its owner from removing what is in it: make it writable first."""
    directory = Path(path).parent
    with contextlib.suppress(OSError):
        if not directory.is_symlink():
            directory.chmod(directory.stat().st_mode | 0o700)
    if remove in (os.unlink, os.rmdir):
        remove(path)
    else:  # it could not even be looked into
        Path(path).chmod(0o700)
        shutil.rmtree(path)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file so that it is either there whole or not at all, also after a loss of power."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()  # what was left, or planted: a link would lead elsewhere
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # write and fsync do not say whose
        raise


def sync_file_system(path: Path) -> None:
    """Write everything of the file system that holds `path` to its disk."""
    import ctypes

    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    except AttributeError:  # a C library without syncfs
        os.sync()
    finally:
        os.close(handle)


def sync_directory(path: Path) -> None:
    """Write a directory's entries to disk, so that a rename in it survives a power failure. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


BYTECODE = "__pycache__"
"""The directory of byte code, which Python writes when it likes and which is nobody's file.

A `.pyc` outside of it is none: Python never writes one there, and runs it as a module of its own.
"""


def is_bytecode(path: str) -> bool:
    """Tell whether a path is byte code that Python may write or remove at any time."""
    return f"/{BYTECODE}/" in path or path.startswith(f"{BYTECODE}/")


def walk(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the path of every file and link below a directory, relative to it; byte code is left out, no link is followed.

    A directory that is not there, or not any more, holds nothing.
    """
    queue = [(str(root), "")]
    while queue:
        directory, prefix = queue.pop()
        try:
            listing = os.scandir(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with listing as entries:
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != BYTECODE:
                        queue.append((entry.path, path + "/"))
                else:
                    yield path, entry


def read_start(path: Path, most: int) -> bytes:
    """Return the first `most` bytes of a file. A link is not followed, and a pipe is not waited for. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(most)


_CHUNK = 1 << 20


def file_crc32(path: Path) -> int:
    """Return the CRC-32 of a file, as zip archives have it."""
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def file_sha256(path: Path) -> str:
    """Return the file's SHA-256 in hex. A link is not followed: it has no content of its own."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = os.read(handle, _CHUNK)
        digest = hashlib.sha256(data)
        while data:
            data = os.read(handle, _CHUNK)
            digest.update(data)
    finally:
        os.close(handle)
    return digest.hexdigest()
