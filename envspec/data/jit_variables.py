"""The table of what each just-in-time compiler reads from the environment: `data/jit_variables.toml`."""

from __future__ import annotations

import datetime
from enum import Enum
from functools import lru_cache
from pathlib import Path

import msgspec


class Kind(str, Enum):
    """Says what a variable holds, and with it how its value is made."""

    ARCH_LIST = "arch-list"
    CACHE_DIR = "cache-dir"
    PATH = "path"


class Consumer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Describes one variable of one reader, and where that was read."""

    consumer: str
    variable: str
    kind: Kind
    value: str
    package: str
    version: str
    file: str
    as_of: datetime.date
    note: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    row: tuple[Consumer, ...]


@lru_cache(maxsize=1)
def consumers() -> tuple[Consumer, ...]:
    """Return the rows in the file's order, each variable once."""
    text = (Path(__file__).parent / "jit_variables.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Table).row
