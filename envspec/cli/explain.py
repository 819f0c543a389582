"""`envspec explain`: why a code exists, what it looks like when it bites, how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from enum import Enum
from functools import cache

import msgspec

from envspec.check.rules import RULES
from envspec.data import load_table
from envspec.doctor.checks import CHECKS
from envspec.report.errors import UsageError
from envspec.report.explanations import explained_codes, explanation


class ErrorExit(str, Enum):
    """Which exit code an error ends in; the names of `errors.Exit`."""

    FINDINGS = "findings"
    USAGE = "usage"
    WORLD = "world"


class ErrorRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `data/codes.toml`."""

    code: str
    exit: ErrorExit
    means: str


class FindingRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `data/findings.toml`."""

    code: str
    command: str
    means: str


class Code(msgspec.Struct, frozen=True):
    """One code: `rule` if it is of a finding, of the check or of `command`; else an error that ends one with `exit`."""

    code: str
    means: str
    rule: bool
    exit: ErrorExit = ErrorExit.FINDINGS
    command: str = ""


@cache
def all_codes() -> tuple[Code, ...]:
    """Every code of envspec, by name. A code that is both a rule's and an error's counts as the rule's."""
    found = {row.code: Code(row.code, row.means, False, row.exit) for row in load_table("codes", ErrorRow)}
    rows = load_table("findings", FindingRow)
    found |= {row.code: Code(row.code, row.means, True, command=row.command) for row in rows}
    # host-compiler is a rule of the check and a check of doctor: one question, one page.
    found |= {row.code: Code(row.code, row.summary, True, command="doctor") for row in CHECKS.all()}
    found |= {rule.code: Code(rule.code, rule.summary, True, command="check") for rule in RULES.all()}
    return tuple(found[code] for code in sorted(found))


def run_explain(code: str | None) -> str:
    """The text to print. Raises UsageError `unknown-code`."""
    if code is None:
        return "\n".join(_list()) + "\n"
    # As it stands in a message: error[torch-abi].
    wanted = code.strip().lower().rpartition("[")[2].rstrip("]:")
    known = {c.code: c for c in all_codes()}
    if wanted not in known:
        raise UsageError("unknown-code", f"envspec has no code {code!r}", fix=_nearest(wanted, tuple(known)))
    found = known[wanted]
    text = (
        explanation(wanted)
        or "There is no longer explanation of this code yet; the message says all there is.\n"
    )
    return f"{found.code}: {found.means}\n\n{text}"


def require_code(code: str) -> None:
    """Raises UsageError `unknown-code` for what is no code of a finding."""
    known = tuple(c.code for c in all_codes() if c.rule)
    if code not in known:
        raise UsageError(
            "unknown-code", f"no finding has the code {code!r}", where="--allow", fix=_nearest(code, known)
        )


def _list() -> Iterator[str]:
    codes = all_codes()
    width = max(len(c.code) for c in codes)
    commands = sorted({c.command for c in codes if c.command}, key=lambda name: (name != "check", name))
    groups = [(f"Findings of envspec {name}", [c for c in codes if c.command == name]) for name in commands]
    for title, chosen in (*groups, ("Errors: what ends a command", [c for c in codes if not c.rule])):
        yield f"{title}:"
        yield from (f"  {c.code:<{width}}  {c.means}" for c in chosen)
        yield ""
    yield f"envspec explain CODE tells more about {len(explained_codes())} of them."


def _nearest(word: str, codes: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, codes, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else "envspec explain lists all codes"
