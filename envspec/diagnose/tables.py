"""Reading the tables under `data/`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of one file."""
    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    tables: dict[str, Any] = parser.loads(path.read_text(encoding="utf-8"))
    return tables
