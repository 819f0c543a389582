"""Tables of knowledge. Each row names its source and the day it was read (`source`, `as-of`)."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Row = TypeVar("Row", bound=msgspec.Struct)


def load_toml(text: str) -> dict[str, Any]:
    """Parse TOML that envspec or uv wrote; profiles are read by tomlkit, which keeps what users write."""
    return tomllib.loads(text)


def load_table(name: str, row: type[Row]) -> tuple[Row, ...]:
    """The rows (`[[row]]`) of `data/NAME.toml`, checked against their type."""
    text = files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(load_toml(text)["row"], tuple[row, ...])  # type: ignore[valid-type]
