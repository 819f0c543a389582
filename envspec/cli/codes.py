"""Every code of envspec: what ends a command, what a check finds, and the causes that `diagnose` names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cache

import msgspec

from envspec.check.rules import RULES
from envspec.data import load_table
from envspec.doctor.checks import CHECKS
from envspec.report.errors import Exit, UsageError

COMMANDS = ("check", "audit", "verify", "probe", "doctor")
"""The commands that make findings, in the order in which a user meets them."""


class ErrorExit(str, Enum):
    """Says which exit code an error ends in, by the names of `errors.Exit`."""

    FINDINGS = "findings"
    USAGE = "usage"
    EXTERNAL = "external"
    INTERNAL = "internal"
    INTERRUPTED = "interrupted"

    @property
    def exit(self) -> Exit:
        """Return the exit code."""
        return Exit[self.name]


class ErrorRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describes one row of `data/codes.toml`."""

    code: str
    exit: ErrorExit
    means: str


class FindingRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describes one row of `data/findings.toml`."""

    code: str
    command: str
    means: str


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one code. `command` is the one whose finding it is; empty for an error that ends a command with `exit`."""

    code: str
    means: str
    command: str = ""
    exit: ErrorExit = ErrorExit.FINDINGS


@cache
def all_codes() -> tuple[Code, ...]:
    """Return every code of a finding or an error, by name. One that is both counts as a finding's."""
    found = {
        row.code: Code(code=row.code, means=row.means, exit=row.exit) for row in load_table("codes", ErrorRow)
    }
    for row in load_table("findings", FindingRow):
        found[row.code] = Code(code=row.code, means=row.means, command=row.command)
    # host-compiler is a rule of the check and a check of doctor: one question, one page.
    for command, registry in (("doctor", CHECKS), ("check", RULES)):
        for rule in registry.all():
            found[rule.code] = Code(code=rule.code, means=rule.summary, command=command)
    return tuple(found[code] for code in sorted(found))


def allowed_codes(codes: Sequence[str]) -> frozenset[str]:
    """Return the codes of `--allow`. Raises UsageError `unknown-code` for one of no finding, which would allow nothing."""
    known = tuple(row.code for row in all_codes() if row.command) if codes else ()
    for code in codes:
        if code not in known:
            raise UsageError(
                "unknown-code",
                f"no finding has the code {code!r}",
                where="--allow",
                fix=nearest_code(code, known),
            )
    return frozenset(codes)


def nearest_code(word: str, codes: Iterable[str]) -> str:
    """Return a fix that names the nearest code, or where all of them are."""
    close = difflib.get_close_matches(word, tuple(codes), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else "envspec explain lists all codes"
