"""The explanations: one page `CODE.md` for a code, in words for whoever met it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PAGES = Path(__file__).parent
_CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@cache
def explained_codes() -> frozenset[str]:
    """Return every code that has a page."""
    return frozenset(page.stem for page in _PAGES.glob("*.md"))


def explanation(code: str) -> str | None:
    """Return the page of a code, without its heading; None if there is none. A code is never taken for a path."""
    if not _CODE.fullmatch(code) or code not in explained_codes():
        return None
    text = (_PAGES / f"{code}.md").read_text(encoding="utf-8")
    return text.partition("\n")[2].strip() + "\n"
