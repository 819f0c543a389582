"""What envspec does about each cause family of `envspec diagnose`: `data/coverage.toml`."""

from __future__ import annotations

from functools import cache

import msgspec

from envspec.data import load_table


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
    """Every row."""
    return load_table("coverage", CoverageRow)
