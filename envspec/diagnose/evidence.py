"""What a line of a log shows: the values that pass from recognising to judging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from envspec.diagnose.kinds import Kind
from envspec.diagnose.knowledge import Family
from envspec.diagnose.lines import LogLine


class Sign(NamedTuple):
    """Holds the form of a failure that a line has, and the points that this form has more or less than its kind."""

    kind: Kind
    points: int = 0

    def with_more(self, points: int) -> Sign:
        """Return this sign with more points."""
        return Sign(self.kind, self.points + points)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one line that shows a failure.

    `chained` means that it is an exception, or ends one. `lookup` means that the exception is of a class with which
    programs ask whether something is there.
    """

    line: LogLine
    sign: Sign
    family: Family | None
    parts: Mapping[str, str]
    chained: bool
    lookup: bool = False

    @property
    def kind(self) -> Kind:
        """Return the kind that its form has, or that its family has where the form is one that many failures share."""
        if self.family is not None and self.sign.kind in (Kind.PYTHON, Kind.MESSAGE, Kind.CRASH):
            return self.family.kind
        return self.sign.kind
