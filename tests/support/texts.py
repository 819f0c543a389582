"""Comparing rendered messages: the lines that every message ends with are checked here once and taken off."""

from __future__ import annotations

import re

_HEAD = re.compile(r"(?:error|warning|unknown|note)\[([a-z0-9-]+)\]: ")


def without_more(text: str) -> str:
    """The text without its `more: envspec explain CODE` lines, each of which must name the code of its message.

    Without the lines that name the log of a failed build, too.
    """
    lines, code = [], ""
    for line in text.splitlines(keepends=True):
        head = _HEAD.match(line)
        code = head[1] if head else code
        if line.startswith("  more: envspec explain "):
            assert line.rstrip("\n") == f"  more: envspec explain {code}", line
        elif line.startswith("  log: "):
            assert line.rstrip("\n").endswith("/.envspec/last-build.log"), line
        else:
            lines.append(line)
    return "".join(lines) if text.endswith("\n") else "".join(lines).rstrip("\n")
