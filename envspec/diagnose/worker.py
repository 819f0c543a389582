"""What one source of lines is in the middle of: a traceback, a chain of exceptions, an abort of C++."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from envspec.diagnose.evidence import Evidence, Sign
from envspec.diagnose.forms import exception_parts
from envspec.diagnose.lines import LogLine
from envspec.diagnose.problems import Problem
from envspec.diagnose.scoring import Distance, Limit, Step, distance, limit, points

_FRAME = re.compile(r'^\s{0,16}(?:\| )?File "')


class Worker(msgspec.Struct):
    """Holds the state of one source of lines; it changes with each of them."""

    in_traceback: bool = False
    opened: int = 0
    """The line on which the traceback began."""
    frame_indent: int = -1
    """The indentation of the frame that the last line was, -1 if it was none."""
    link: Literal["", "cause", "during"] = ""
    """How the next exception belongs to the last one: raised because of it, or while it was handled."""
    root: Problem | None = None
    """The first exception of the chain."""
    depth: int = 0
    """How many lines "Caused by: " have followed one another."""
    terminating: bool = False
    """C++ said "terminate called"; the message of its exception follows."""

    def quotes_source(self, line: LogLine) -> bool:
        """Return whether the line is the source code that a traceback shows below a frame."""
        frame, self.frame_indent = self.frame_indent, -1
        if frame < 0:
            return False
        indent = _indent(line.body)
        return indent > frame or (not line.prefixed and indent == 0 and exception_parts(line.body) is None)

    def enters_frame(self, line: LogLine) -> bool:
        """Return whether the line is a frame of a traceback, and remember it."""
        if not _FRAME.match(line.body):
            return False
        self.frame_indent = _indent(line.body)
        return True

    def open_traceback(self, number: int) -> None:
        """Note that a traceback begins."""
        self.in_traceback, self.opened = True, number

    def begin_traceback(self, number: int) -> None:
        """Note the head of a traceback: one that is not linked to the last begins a chain of its own."""
        if not self.link:
            self.root = None
        self.open_traceback(number)

    def join_exceptions(self, body: str) -> None:
        """Remember how Python says that two tracebacks belong together."""
        if "direct cause" in body:
            self.link = "cause"
        elif "another exception" in body:
            self.link = "during"

    def place_in_chain(self, evidence: Evidence) -> int:
        """Return the points for the place in a chain of exceptions.

        A later exception counts less than the first, but for one case: the first was a lookup that failed, which says little.
        """
        link, self.link = self.link, ""
        if not evidence.chained or not link or self.root is None:
            return 0
        if link == "during" and self.root.lookup and self.root.score < limit(Limit.STRONG_ROOT):
            self.root.score += points(Step.CHAINED)
            return 0
        return points(Step.CHAINED)

    def count_causes(self, body: str, sign: Sign) -> Sign:
        """Return the sign with more points for each "Caused by: " before it: the deepest link of such a chain is the cause."""
        if not body.lstrip().startswith("Caused by: "):
            self.depth = 0
            return sign
        self.depth += 1
        return sign.with_more(points(Step.CAUSED_BY) * min(self.depth, distance(Distance.CAUSED_BY)))


def _indent(body: str) -> int:
    return len(body) - len(body.lstrip())
