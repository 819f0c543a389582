"""Which values a key of a profile may have: the table `data/profile_values.toml`."""

from __future__ import annotations

from functools import cache

import msgspec

from envspec.data import load_table


class ProfileValues(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Holds the values of one key."""

    key: str
    values: tuple[str, ...]
    why: str
    source: str
    as_of: str


@cache
def values_by_key() -> dict[str, tuple[str, ...]]:
    """Return the values of each key that the table knows, in the order in which they are shown."""
    return {row.key: row.values for row in load_table("profile_values", ProfileValues)}


def values_of(key: str) -> tuple[str, ...]:
    """Return the values that a key may have, in the order in which they are shown. Raises KeyError for another key."""
    return values_by_key()[key]
