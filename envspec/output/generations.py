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
        last                                     the highest number that a generation was ever published under
        generations/7/                           venv, cuda, sglang_env.sh, envspec.json, stats, shells
        toolchains/DIGEST/                       CUDA_HOME: its path changes exactly when the toolchain does
        jit/DIGEST/                              what the JIT compilers keep, for that toolchain

A generation without its manifest was never finished; it is removed by the next build, and so is a toolchain that no
generation refers to. Nothing is removed that does not lie where only envspec writes, or that a process still uses, and
no link is ever followed to something to remove or to write.

What survives a loss of power: everything of a generation is on disk before its manifest is, and the manifest before the
switch. So a manifest that can be read stands for a generation that is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from envspec.fs import link_to, names_in, remove_tree, sync_directory, sync_file_system, write_synced
from envspec.host.processes import SHELLS, users_of
from envspec.report.errors import WorldError

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
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_TEMPORARY = re.compile(
    r"\.(?:current|venv|cuda|envspec\.json|sglang_env\.sh|last|holder|owner|stats\.msgpack)\.new"
)
"""What a write leaves that was cut short before its rename."""


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
        found = self._shown()
        return found if found is not None and found.manifest.is_file() else None

    def _shown(self) -> Generation | None:
        """What the link `current` names, whole or not."""
        try:
            target = str((self.root / "current").readlink())
        except OSError:
            return None
        prefix = f"{STATE}/generations/"
        if not target.startswith(prefix) or not _NUMBER.fullmatch(target.removeprefix(prefix)):
            return None
        return self.generation(int(target.removeprefix(prefix)))

    def numbers(self) -> tuple[int, ...]:
        """The numbers of all generations on disk, finished or not, ascending."""
        try:
            names = [e.name for e in os.scandir(self.generations_dir) if e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return ()
        return tuple(sorted(int(n) for n in names if _NUMBER.fullmatch(n)))

    def finished(self) -> tuple[int, ...]:
        """The numbers of the generations that have a manifest, ascending."""
        return tuple(n for n in self.numbers() if self.generation(n).manifest.is_file())

    def begin(self) -> Generation:
        """A new generation directory with the next number; still invisible."""
        shown = self._shown()
        number = max((*self.numbers(), shown.number if shown else 0, self._last()), default=0) + 1
        found = self.generation(number)
        found.path.mkdir(parents=True)
        (found.path / SHELLS).mkdir()
        return found

    def _last(self) -> int:
        """The highest number ever published: what was told to somebody never means another environment."""
        try:
            text = (self.state / "last").read_bytes()[:16].decode("ascii", "replace").strip()
        except OSError:
            return 0
        return int(text) if _NUMBER.fullmatch(text) else 0

    def sweep(self) -> None:
        """Remove what an interrupted command left: unfinished generations and toolchains, and the work directory.

        What `current` names stays, though its manifest may be lost, and what a process uses stays.
        """
        shown = self._shown()
        for number in self.numbers():
            found = self.generation(number)
            kept = found.manifest.is_file() or (shown is not None and shown.number == number)
            if not kept and not any(users_of(found.path)):
                remove_tree(found.path)
        for name in names_in(self.toolchains_dir):
            if name.startswith("new-"):
                remove_tree(self.toolchains_dir / name)
        remove_tree(self.work)
        for place in (self.root, self.state, *(self.generation(n).path for n in self.numbers())):
            for name in names_in(place):
                if _TEMPORARY.fullmatch(name):
                    remove_tree(place / name)

    def sweep_toolchains(self, *, caches: bool) -> tuple[str, ...]:
        """Remove the toolchains that nothing needs, and with `caches` what JIT compilers keep for them."""
        names = self.unneeded_toolchains()
        for name in names:
            remove_tree(self.toolchains_dir / name)
            if caches:
                remove_tree(self.jit_dir / name)
        return names

    def unneeded_toolchains(self) -> tuple[str, ...]:
        """Finished toolchains that no generation refers to and no process uses."""
        needed = set()
        for number in self.numbers():
            try:
                needed.add(self.generation(number).path.joinpath("cuda").readlink().name)
            except FileNotFoundError:
                if self.generation(number).manifest.is_file():
                    return ()  # which one it needs cannot be known
        return tuple(
            name
            for name in self.toolchain_names()
            if name not in needed
            and not any(users_of(self.toolchains_dir / name))
            and not any(users_of(self.jit_dir / name))
        )

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
        write_synced(self.state / "last", f"{max(generation.number, self._last())}\n".encode())
        # Files of this generation were written by uv, the linker and envspec, and nobody has synced them one by one. They
        # are on disk before the manifest, which says that the generation is whole, and that is before the switch.
        sync_file_system(generation.path)
        write_synced(generation.manifest, manifest)
        self.switch(generation)

    def switch(self, generation: Generation) -> None:
        """Make a finished generation the current one, in one step."""
        for name, target in LINKS.items():
            link_to(self.root / name, target)
        link_to(self.root / "current", f"{STATE}/generations/{generation.number}")
        sync_directory(self.root)

    def toolchain_names(self) -> tuple[str, ...]:
        """The finished toolchains on disk."""
        return tuple(name for name in names_in(self.toolchains_dir) if re.fullmatch(r"[0-9a-f]{16}", name))

    @contextlib.contextmanager
    def held(self, waiting: Callable[[str], None]) -> Iterator[int]:
        """Hold the lock of this output; `waiting` is told who holds it if somebody else does.

        Gives the lock's descriptor. Programs that write into the output inherit it: if envspec is killed, the lock stays
        held until the last of them has ended, so that none writes into what the next build removes.
        """
        with self._opened_lock() as handle:
            try:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    waiting(self._holder())
                    fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                raise self._unlockable(error) from None
            try:
                with contextlib.suppress(OSError):  # it only tells others whom they wait for
                    write_synced(self.state / "holder", json.dumps(
                        {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
                    ).encode())  # fmt: skip
                yield handle
            finally:
                with contextlib.suppress(OSError):
                    (self.state / "holder").unlink()

    @contextlib.contextmanager
    def _opened_lock(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(self.state / "lock", flags, 0o644)
        except OSError as error:
            raise self._unlockable(error) from None
        try:
            yield handle
        finally:
            os.close(handle)

    def _unlockable(self, error: OSError) -> WorldError:
        return WorldError(
            "output-unwritable", f"cannot lock {self.root}: {error.strerror}", where=str(self.state)
        )

    def _holder(self) -> str:
        try:
            row = json.loads((self.state / "holder").read_bytes()[:4096])
            pid, host = int(row["pid"]), str(row["host"])
            since = time.strftime("%H:%M:%S", time.localtime(int(row["since"])))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return "another envspec"
        who = f"process {pid} on {host[:64]!r} since {since}"
        if host == socket.gethostname() and not Path(f"/proc/{pid}").exists():
            return f"what is still running of {who}, which was killed"
        return who
