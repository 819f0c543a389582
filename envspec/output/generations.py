"""The layout of the output directory, its generations, and the one atomic switch.

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
        last-build.log                           what the last build that had something to do ran, and how it ended
        generations/7/                           venv, cuda, sglang_env.sh, envspec.json, stats.msgpack, shells
        toolchains/DIGEST/                       CUDA_HOME: its path changes exactly when the toolchain does
        jit/DIGEST/                              what the JIT compilers keep, for that toolchain

A generation without its manifest was never finished; it is removed by the next build, and so is a toolchain that no
generation refers to. Nothing is removed that does not lie where only envspec writes, or that a process still uses, and
no link is ever followed to something to remove or to write.

What survives a loss of power: everything of a generation is on disk before its manifest is, and the manifest before the
switch. So a manifest that can be read stands for a generation that is whole.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from envspec.activation.values import SCRIPT
from envspec.fs import link_to, names_in, sync_directory, sync_file_system, write_synced
from envspec.host.processes import SHELLS

STATE = ".envspec"
MANIFEST = "envspec.json"
LOG = f"{STATE}/last-build.log"
STAT_CACHE = "stats.msgpack"
"""What the file system said of each file when it was published: only true on this machine, so not in the manifest."""
LINKS = {
    SCRIPT: f"current/{SCRIPT}",
    "venv": "current/venv",
    "cuda": "current/cuda",
    MANIFEST: f"current/{MANIFEST}",
}
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


class Generation(msgspec.Struct, frozen=True):
    """Describes one complete or growing environment. `number` counts up and is never used twice."""

    number: int
    path: Path

    @property
    def venv(self) -> Path:
        return self.path / "venv"

    @property
    def cuda(self) -> Path:
        return self.path / "cuda"

    @property
    def script(self) -> Path:
        return self.path / SCRIPT

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST

    @property
    def stat_cache(self) -> Path:
        return self.path / STAT_CACHE


class Output(msgspec.Struct, frozen=True):
    """Describes an output directory. Get one by `create` (to write) or `existing` (to read)."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / STATE

    @property
    def script(self) -> Path:
        return self.root / SCRIPT

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
        """Return the generation with that number, whether it exists or not."""
        return Generation(number, self.generations_dir / str(number))

    def current(self) -> Generation | None:
        """Return what `out/` shows, or None. A link that envspec did not make counts as none."""
        found = self.shown()
        return found if found is not None and found.manifest.is_file() else None

    def shown(self) -> Generation | None:
        """Return what the link `current` names, whole or not."""
        try:
            target = str((self.root / "current").readlink())
        except OSError:
            return None
        prefix = f"{STATE}/generations/"
        if not target.startswith(prefix) or not _NUMBER.fullmatch(target.removeprefix(prefix)):
            return None
        return self.generation(int(target.removeprefix(prefix)))

    def numbers(self) -> tuple[int, ...]:
        """Return the numbers of all generations on disk, finished or not, ascending."""
        try:
            names = [e.name for e in os.scandir(self.generations_dir) if e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return ()
        return tuple(sorted(int(n) for n in names if _NUMBER.fullmatch(n)))

    def finished(self) -> tuple[int, ...]:
        """Return the numbers of the generations that have a manifest, ascending."""
        return tuple(n for n in self.numbers() if self.generation(n).manifest.is_file())

    def toolchain_names(self) -> tuple[str, ...]:
        """Return the names of the finished toolchains on disk."""
        return tuple(name for name in names_in(self.toolchains_dir) if re.fullmatch(r"[0-9a-f]{16}", name))

    def begin(self) -> Generation:
        """Make a generation directory with the next number; it is still invisible."""
        shown = self.shown()
        number = max((*self.numbers(), shown.number if shown else 0, self._last()), default=0) + 1
        found = self.generation(number)
        found.path.mkdir(parents=True)
        (found.path / SHELLS).mkdir()
        return found

    def publish(self, generation: Generation, manifest: bytes, stat_cache: bytes) -> None:
        """Make a finished generation the current one. What is switched to is on disk before the switch."""
        generation.stat_cache.write_bytes(stat_cache)
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

    def _last(self) -> int:
        """Return the highest number ever published: what was told to somebody never means another environment."""
        try:
            text = (self.state / "last").read_bytes()[:16].decode("ascii", "replace").strip()
        except OSError:
            return 0
        return int(text) if _NUMBER.fullmatch(text) else 0
