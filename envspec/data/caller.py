"""What a machine and its user may have that matters to an environment: variables, caches, libraries.

The tables are `caller_variables.toml`, `cache_directories.toml`, `wheel_libraries.toml` and `system_demands.toml`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import msgspec

from envspec.data import load_table

VariableKind = Literal["search-list", "headers", "flags"]


class _Row(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    source: str
    as_of: str


class CallerVariable(_Row, frozen=True, kw_only=True):
    """Names variables that one program reads."""

    names: tuple[str, ...]
    kinds: tuple[VariableKind, ...]
    reader: str


class CacheDirectory(_Row, frozen=True, kw_only=True):
    """Describes a directory below HOME, and the variable that says where it lies instead."""

    variable: str
    below: str
    needed: bool
    holds: Literal["programs", "files"]


class WheelLibraries(_Row, frozen=True, kw_only=True):
    """Names libraries that wheels bring: regular expressions for the names before `.so`."""

    names: tuple[str, ...]
    package: str


class SystemDemand(_Row, frozen=True, kw_only=True):
    """Describes a version of a system library that wheels ask for."""

    library: str
    prefix: str
    version: str
    whose: str
    severity: Literal["error", "warning"]

    @property
    def release(self) -> tuple[int, ...]:
        """Return the version as numbers."""
        return tuple(map(int, self.version.split(".")))


@cache
def variables(kind: VariableKind) -> tuple[str, ...]:
    """Return the names of the variables of a kind, in the order of the table."""
    rows = load_table("caller_variables", CallerVariable)
    return tuple(name for row in rows if kind in row.kinds for name in row.names)


@cache
def cache_directories() -> tuple[CacheDirectory, ...]:
    """Return every cache directory, in the order of the table."""
    return load_table("cache_directories", CacheDirectory)


@cache
def wheel_library() -> re.Pattern[str]:
    """Return the pattern of the file names of libraries that wheels bring."""
    names = (name for row in load_table("wheel_libraries", WheelLibraries) for name in row.names)
    return re.compile(rf"(?:{'|'.join(names)})\.so(?:\.\d+)*")


@cache
def system_demands(library: str) -> tuple[SystemDemand, ...]:
    """Return what wheels ask of a system library, the lowest version first."""
    rows = (row for row in load_table("system_demands", SystemDemand) if row.library == library)
    return tuple(sorted(rows, key=lambda row: row.release))
