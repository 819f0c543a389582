"""What envspec does about each cause that `envspec diagnose` knows: `coverage.toml` beside this file.

Documentation only: `make_reference.py` makes docs/reference/coverage.md from it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from envspec.data import load_toml


class CoverageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One family; the fields are explained in the table."""

    family: str
    prevented: str
    check: tuple[str, ...]
    audit: tuple[str, ...]
    doctor: tuple[str, ...]
    probe: tuple[str, ...]


@cache
def coverage() -> tuple[CoverageRow, ...]:
    """Every row of the table, in its order."""
    text = (Path(__file__).parent / "coverage.toml").read_text(encoding="utf-8")
    return msgspec.convert(load_toml(text)["row"], tuple[CoverageRow, ...])
