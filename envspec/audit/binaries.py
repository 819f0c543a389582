"""The files of a venv, and which of them the dynamic loader may be asked to load."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from envspec.elf import Elf, ElfError, read
from envspec.fs import walk

# C++ headers and the files of a dist-info have no suffix either.
_NO_PROGRAMS = re.compile(r"(?:/include|\.dist-info)/")
_LIBRARY = re.compile(r"\.so(?:\.\d[\w.]*)?\Z")
_EXTENSION = re.compile(r"\.(?:cpython-(\d)(\d+)[^.]*|abi3)\.so\Z|\.cpython-(\d)(\d+)\.so\Z")


@dataclass(frozen=True, eq=False)
class Binary:
    """Describes one ELF file. `name` is relative to the venv; the file on disk is `path`."""

    name: str
    path: str
    elf: Elf

    @property
    def directory(self) -> str:
        """Return the directory to which `$ORIGIN` points."""
        return self.path.rpartition("/")[0]

    @property
    def is_program(self) -> bool:
        """Tell whether it is started, not loaded."""
        return bool(self.elf.interpreter) and not self.elf.soname


@dataclass(frozen=True)
class Damaged:
    """Describes a file that ought to be a library and cannot be read as one."""

    name: str
    code: str
    reason: str

    @property
    def is_for_another_machine(self) -> bool:
        """Tell whether it is sound, but no 64-bit library at all."""
        return self.code == "elf-unsupported"


@dataclass(frozen=True)
class VenvFiles:
    """Holds the names of all files of a venv, relative to it, and its ELF files."""

    root: str
    names: tuple[str, ...]
    binaries: tuple[Binary, ...]
    damaged: tuple[Damaged, ...] = field(default=())


def read_binaries(root: Path, names: Iterable[str] | None = None) -> VenvFiles:
    """Read the ELF files among the files of a venv. A link is left out: what it points at is there itself.

    A library or a program is told by its name: `libx.so`, `libx.so.13`, `nvcc`, `tool.0`. Reading the first bytes of all
    71,000 files of an environment would take longer than everything else; 12,681 of them are cubins, ELF files for the GPU.
    """
    top = os.path.realpath(root)
    listed = tuple(sorted(path for path, _ in walk(Path(top))) if names is None else names)
    binaries = []
    damaged = []
    for name in listed:
        suffix = name.rpartition(".")[2]
        library = suffix == "so"
        if not library:
            if suffix[:1].isalpha() and "/" not in suffix:
                continue
            library = _LIBRARY.search(name) is not None
            if not library and _NO_PROGRAMS.search(name):
                continue
        path = f"{top}/{name}"
        try:
            elf = read(path)
        except ElfError as error:
            if error.code not in ("elf-not-elf", "elf-unreadable") or (
                library and error.code == "elf-not-elf" and not _is_text(path)
            ):
                damaged.append(Damaged(name, error.code, error.reason))
            continue
        if elf.mapped > elf.size:
            damaged.append(
                Damaged(
                    name,
                    "elf-truncated",
                    f"the loader maps {elf.mapped} bytes of it, the file has {elf.size}",
                )
            )
        elif elf.has_dynamic and not Path(path).is_symlink():
            binaries.append(Binary(name, path, elf))
    return VenvFiles(top, listed, tuple(binaries), tuple(damaged))


def _is_text(path: str) -> bool:
    """Tell whether a file is a linker script or some other text that bears a library's name."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - many files, no objects
            start = file.read(256)
    except OSError:
        return True
    return bool(start) and b"\0" not in start


def python_minor_of(name: str) -> str | None:
    """Return the Python minor that an extension module's name is for (`3.12`), `abi3`, or None if it is no extension's name."""
    match = _EXTENSION.search(name)
    if match is None:
        return None
    major, minor = (match[1], match[2]) if match[1] else (match[3], match[4])
    return f"{major}.{minor}" if major else "abi3"
