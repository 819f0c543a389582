"""Where the dynamic loader finds a library: the order of ld.so(8), without loading anything.

Known gaps: hardware-capability subdirectories (`glibc-hwcaps`) of search paths, `$LIB` and `$PLATFORM`, and LD_PRELOAD.
The loader's cache is read as it stands, as the loader does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from envspec.audit.binaries import Binary
from envspec.elf import ElfError, read
from envspec.host.ld_cache import own_cache, system_directories


class Loader:
    """Finds libraries as the loader of one machine does, with one LD_LIBRARY_PATH. Those outside the venv are read once."""

    def __init__(
        self,
        machine: str,
        library_path: Iterable[str],
        known: Iterable[Binary],
        cache: Mapping[str, str] | None = None,
    ) -> None:
        self.machine = machine
        self.library_path = tuple(library_path)
        self._cache = own_cache(machine) if cache is None else cache
        self._by_path = {binary.path: binary for binary in known}
        self._by_inode: dict[tuple[int, int], Binary | None] = {}
        for binary in self._by_path.values():
            status = Path(binary.path).stat()
            self._by_inode.setdefault((status.st_dev, status.st_ino), binary)
        self._listings: dict[str, frozenset[str]] = {}
        self._found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Binary | None] = {}
        self._paths: dict[Binary, tuple[str, ...]] = {}

    def find(self, name: str, by: Binary, above: tuple[Binary, ...]) -> Binary | None:
        """Find what a DT_NEEDED `name` of `by` leads to; `above` is who loaded `by`, nearest first."""
        rpath = self._rpath(by, above)
        runpath = self._expanded(by, by.elf.runpath)
        key = (name, rpath, runpath)
        if key not in self._found:
            self._found[key] = self._search(name, rpath, runpath)
        return self._found[key]

    def searched(self, by: Binary) -> tuple[str, ...]:
        """Return the directories in which a library that `by` needs is looked for before the system's."""
        directories = (*self._rpath(by, ()), *self.library_path, *self._expanded(by, by.elf.runpath))
        return tuple(dict.fromkeys(directories))

    def _rpath(self, by: Binary, above: tuple[Binary, ...]) -> tuple[str, ...]:
        """Return the RPATHs that count: the file's own and those of its loaders, unless the file has a RUNPATH."""
        if by.elf.runpath:
            return ()
        directories: tuple[str, ...] = ()
        for one in (by, *above):
            if one.elf.rpath and not one.elf.runpath:
                directories += self._expanded(one, one.elf.rpath)
        return directories

    def _expanded(self, binary: Binary, path: tuple[str, ...]) -> tuple[str, ...]:
        if not path:
            return ()
        return tuple(
            os.path.normpath(element.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", binary.directory))
            for element in path
            if element
        )

    def _search(self, name: str, rpath: tuple[str, ...], runpath: tuple[str, ...]) -> Binary | None:
        if "/" in name:
            return self.open(name)
        for directory in (*rpath, *self.library_path, *runpath):
            found = self._in(directory, name)
            if found is not None:
                return found
        cached = self._cache.get(name)
        found = self.open(cached) if cached else None
        if found is not None:
            return found
        for directory in system_directories(self.machine):
            found = self._in(directory, name)
            if found is not None:
                return found
        return None

    def _in(self, directory: str, name: str) -> Binary | None:
        if directory not in self._listings:
            try:
                self._listings[directory] = frozenset(entry.name for entry in os.scandir(directory))
            except OSError:
                self._listings[directory] = frozenset()
        return self.open(f"{directory}/{name}") if name in self._listings[directory] else None

    def open(self, path: str) -> Binary | None:
        """Read the library at `path`; None if the loader would pass over it (another machine) or cannot read it."""
        found = self._by_path.get(path)
        if found is None:
            try:
                status = Path(path).stat()
            except OSError:
                return None
            # The loader takes a file that it knows under another name for the same library.
            key = (status.st_dev, status.st_ino)
            if key not in self._by_inode:
                try:
                    self._by_inode[key] = Binary(path, path, read(path))
                except ElfError:
                    self._by_inode[key] = None
            found = self._by_inode[key]
        return self._fitting(found)

    def _fitting(self, binary: Binary | None) -> Binary | None:
        return binary if binary is not None and binary.elf.machine == self.machine else None
