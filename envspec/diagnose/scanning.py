"""From bytes to the lines worth looking at (thin path: all of them)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from envspec.diagnose.lines import QUOTE_LIMIT


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Number and text of each line."""
    for number, line in enumerate(stream, 1):
        yield number, line[:QUOTE_LIMIT].decode("utf-8", "replace").rstrip("\n")
