"""The output directory: what belongs to envspec in it, generations, and the one atomic switch.

    out/
      sglang_env.sh -> current/sglang_env.sh     what people type
      venv          -> current/venv
      cuda          -> current/cuda
      envspec.json  -> current/envspec.json
      current       -> .envspec/generations/7    the only link that ever changes
      .envspec/
        owner                                    says that envspec made this directory
        lock                                     held while somebody builds here
        generations/7/                           venv, cuda, sglang_env.sh, envspec.json
        toolchains/DIGEST/                       CUDA_HOME: its path changes exactly when the toolchain does
        jit/DIGEST/                              what the JIT compilers keep, for that toolchain

A generation without its manifest was never finished; it is removed by the next build. Nothing is removed that does not
lie where only envspec writes, and no link is ever followed to something to remove.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from envspec.errors import EnvspecError, UsageError, WorldError
from envspec.os_errors import DISK_FULL, explain_os_error

STATE = ".envspec"
OWNER_TEXT = "This directory is made and managed by envspec. See envspec.json beside it.\n"
MANIFEST = "envspec.json"
SCRIPT = "sglang_env.sh"
LINKS = {
    SCRIPT: f"current/{SCRIPT}",
    "venv": "current/venv",
    "cuda": "current/cuda",
    MANIFEST: f"current/{MANIFEST}",
}
_NUMBER = re.compile(r"[1-9]\d{0,8}")


class Generation(msgspec.Struct, frozen=True):
    """One complete or growing environment. `number` counts up and is never used twice."""

    number: int
    path: Path

    @property
    def venv(self) -> Path:
        return self.path / "venv"

    @property
    def script(self) -> Path:
        return self.path / SCRIPT

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST


class Output:
    """An output directory. Make one with `claim` (to write) or `existing` (to read)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / STATE

    @property
    def generations_dir(self) -> Path:
        return self.state / "generations"

    @property
    def toolchains_dir(self) -> Path:
        return self.state / "toolchains"

    @property
    def jit_dir(self) -> Path:
        return self.state / "jit"

    @property
    def work(self) -> Path:
        return self.state / "work"

    def generation(self, number: int) -> Generation:
        """The generation with that number, whether it exists or not."""
        return Generation(number, self.generations_dir / str(number))

    def current(self) -> Generation | None:
        """What `out/` shows, or None. A link that envspec did not make counts as none."""
        try:
            target = str((self.root / "current").readlink())
        except OSError:
            return None
        prefix = f"{STATE}/generations/"
        if not target.startswith(prefix) or not _NUMBER.fullmatch(target.removeprefix(prefix)):
            return None
        found = self.generation(int(target.removeprefix(prefix)))
        return found if found.manifest.is_file() else None

    def numbers(self) -> tuple[int, ...]:
        """The numbers of all generations on disk, finished or not, ascending."""
        try:
            names = [e.name for e in os.scandir(self.generations_dir) if e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return ()
        return tuple(sorted(int(n) for n in names if _NUMBER.fullmatch(n)))

    def begin(self) -> Generation:
        """A new generation directory with the next number; still invisible."""
        latest = self.current()
        number = max((*self.numbers(), latest.number if latest else 0), default=0) + 1
        found = self.generation(number)
        found.path.mkdir(parents=True)
        return found

    def sweep(self) -> None:
        """Remove what an interrupted build left: unfinished generations and toolchains, and the work directory."""
        for number in self.numbers():
            found = self.generation(number)
            if not found.manifest.is_file():
                remove_tree(found.path)
        for name in _names(self.toolchains_dir):
            if name.startswith("new-"):
                remove_tree(self.toolchains_dir / name)
        remove_tree(self.work)

    def discard(self, generation: Generation, *, toolchain: str = "") -> None:
        """Remove a generation that was not published, with the toolchain that came with it, if any did.

        One that was published in spite of all (the interruption came after the switch) is what people use: it stays.
        """
        current = self.current()
        if current is not None and current.number == generation.number:
            return
        remove_tree(generation.path)
        if toolchain:
            remove_tree(self.toolchains_dir / toolchain)
        self.sweep()

    def publish(self, generation: Generation, manifest: bytes) -> None:
        """Make a finished generation the current one. What is switched to is on disk before the switch."""
        write_synced(generation.manifest, manifest)
        # Whatever the switch makes visible is on disk first: files of this generation were written by uv, the linker and
        # envspec, and nobody has synced them one by one.
        sync_file_system(generation.path)
        self.switch(generation)

    def switch(self, generation: Generation) -> None:
        """Make a finished generation the current one, in one step."""
        for name, target in LINKS.items():
            _link(self.root / name, target)
        _link(self.root / "current", f"{STATE}/generations/{generation.number}")
        _sync_directory(self.root)

    def toolchain_names(self) -> tuple[str, ...]:
        """The finished toolchains on disk."""
        return tuple(name for name in _names(self.toolchains_dir) if re.fullmatch(r"[0-9a-f]{16}", name))

    @contextlib.contextmanager
    def held(self, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock of this output; `waiting` is told who holds it if somebody else does."""
        from filelock import FileLock, Timeout

        lock = FileLock(str(self.state / "lock"), mode=0o644)
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waiting(self._holder())
                lock.acquire()
        except OSError as error:
            raise WorldError(
                "output-unwritable", f"cannot lock {self.root}: {error.strerror}", where=str(self.state)
            ) from None
        try:
            with contextlib.suppress(OSError):  # it only tells others whom they wait for
                write_synced(self.state / "holder", json.dumps(
                    {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
                ).encode())  # fmt: skip
            yield
        finally:
            with contextlib.suppress(OSError):
                (self.state / "holder").unlink()
            lock.release()

    def _holder(self) -> str:
        try:
            row = json.loads((self.state / "holder").read_bytes()[:4096])
            since = time.strftime("%H:%M:%S", time.localtime(int(row["since"])))
            return f"process {int(row['pid'])} on {str(row['host'])[:64]!r} since {since}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another envspec"


def claim(root: Path) -> Output:
    """The output directory at `root`, made if it is not there. Never takes over what envspec did not make.

    Raises UsageError `output-*` for a path that cannot be an output, WorldError `output-unwritable`.
    """
    examine(root)
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
                write_synced(owner, OWNER_TEXT.encode())
        if not os.access(output.state, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(output.state))
    except OSError as error:
        raise _unwritable(root, error) from None
    return output


def examine(root: Path) -> None:
    """Refuse what cannot become an output, before anything is done for it. Raises what `claim` raises."""
    _check_path(root)
    try:
        _check_foreign(root)
    except OSError as error:
        raise _unwritable(root, error) from None


def _unwritable(root: Path, error: OSError) -> WorldError:
    if error.errno in DISK_FULL:
        return explain_os_error(error)
    return WorldError(
        "output-unwritable",
        f"cannot write to {root}: {error.strerror}",
        where=str(error.filename or root),
        fix="name a directory that you may write to: --out DIR",
    )


def existing(root: Path) -> Output:
    """An output that was built before. Raises UsageError `output-missing`."""
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
    names = _names(root)
    owner = root / STATE / "owner"
    if names and not (owner.is_file() and not (root / STATE).is_symlink()):
        if names == (STATE,) and set(_names(root / STATE)) <= {".owner.new"}:
            return  # a claim that was cut short
        raise UsageError(
            "output-foreign",
            f"{root} is not empty and was not made by envspec",
            where="--out",
            why=f"it holds {', '.join(names[:4])}" + (" ..." if len(names) > 4 else ""),
            fix="name another directory: --out DIR; envspec deletes nothing that it did not make",
        )


def _names(directory: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in os.scandir(directory)))
    except FileNotFoundError:
        return ()


def _link(at: Path, target: str) -> None:
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
    """Remove a tree that envspec made. A link in its place is removed as a link."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file so that it is either there whole or not at all, also after a loss of power."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
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


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
