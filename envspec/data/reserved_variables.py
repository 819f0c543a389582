"""Which variables a profile may set: `data/reserved_variables.toml` lists those that belong to envspec, the loader or a shell."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from envspec.data import load_table

# Lower case belongs to the shells (zsh: path, status, argv); the proxy variables are the known exception.
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*|[a-z]+_proxy")


class ReservedRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one row of the table: regular expressions for whole names, whose they are, and why."""

    owner: str
    names: tuple[str, ...]
    why: str
    source: str
    as_of: str


@cache
def reserved_rows() -> tuple[ReservedRow, ...]:
    """Return the rows in the file's order."""
    return load_table("reserved_variables", ReservedRow)


@cache
def _reserved() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{name})" for row in reserved_rows() for name in row.names))


def settable(name: str) -> bool:
    """Tell whether a profile may set a variable of this name."""
    return _NAME.fullmatch(name) is not None and _reserved().fullmatch(name) is None
