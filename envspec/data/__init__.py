"""Tables of knowledge. Each row names its source and the day it was read (`source`, `as-of`)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

Row = TypeVar("Row", bound=msgspec.Struct)


def load_toml(text: str) -> dict[str, Any]:
    """Parse TOML that envspec or uv wrote; profiles are read by tomlkit, which keeps what users write."""
    try:
        toml = import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10
        toml = import_module("tomli")
    found: dict[str, Any] = toml.loads(text)
    return found


def load_file(path: Path) -> dict[str, Any]:
    """Parse a TOML file that comes with envspec."""
    return load_toml(path.read_text(encoding="utf-8"))


def load_table(name: str, row: type[Row]) -> tuple[Row, ...]:
    """Return the rows (`[[row]]`) of `data/NAME.toml`, checked against their type."""
    table = load_file(Path(__file__).parent / f"{name}.toml")
    return msgspec.convert(table["row"], tuple[row, ...])  # type: ignore[valid-type]
