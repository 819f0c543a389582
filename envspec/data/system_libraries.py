"""The tables of the audit. The knowledge is in `data/*.toml`; here is only how to ask."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from envspec.data import load_table


class PreloadRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes a package whose Python code loads libraries for others."""

    package: str
    by: tuple[str, ...]
    answers: tuple[str, ...]
    globally: tuple[str, ...]
    locally: tuple[str, ...]
    source: str
    as_of: str

    def comes_before(self, file: str, wanted: Iterable[str]) -> bool:
        """Tell whether `file` (relative to site-packages), which lacks libraries of the names `wanted`, is loaded behind it."""
        if self.by and not any(fnmatchcase(file, pattern) for pattern in self.by):
            return False
        return not self.answers or any(re.fullmatch(a, name) for a in self.answers for name in wanted)


class DriverLibraryRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Names libraries that come with the driver."""

    library: str
    symbols: str
    what: str
    source: str
    as_of: str


class OptionalRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Names libraries of the system that some files can do without, or are themselves not needed without."""

    library: str
    by: str
    project: str
    why: str
    source: str
    as_of: str


@cache
def preloads() -> tuple[PreloadRow, ...]:
    """Return all rows, in the order in which their packages load."""
    return load_table("preloads", PreloadRow)


@cache
def driver_library(name: str) -> DriverLibraryRow | None:
    """Return the row for a library that only the driver brings."""
    rows = load_table("driver_libraries", DriverLibraryRow)
    return next((row for row in rows if re.fullmatch(row.library, name)), None)


@cache
def optional_library(name: str, by: str) -> OptionalRow | None:
    """Return the row for a library `name` that the file `by` (its last part counts) may lack."""
    base = by.rpartition("/")[2]
    rows = load_table("optional_libraries", OptionalRow)
    return next((row for row in rows if re.fullmatch(row.library, name) and re.fullmatch(row.by, base)), None)


class ToolkitLibraryRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Names libraries of the CUDA toolkit proper."""

    names: tuple[str, ...]
    source: str
    as_of: str


@cache
def is_toolkit_library(name: str) -> bool:
    """Tell whether a soname (`libcudart.so.13`) is of the CUDA toolkit proper."""
    stem, dot_so, _ = name.partition(".so")
    rows = load_table("toolkit_libraries", ToolkitLibraryRow)
    return bool(dot_so) and any(re.fullmatch(pattern, stem) for row in rows for pattern in row.names)
