"""`envspec explain`: why a code exists, what it looks like when it bites, how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from enum import Enum
from functools import cache

import msgspec

from envspec.check.engine import all_rules
from envspec.data import load_table
from envspec.errors import UsageError
from envspec.explanations import explained_codes, explanation

# `sdist` is yielded by the rule "wheel-missing", whose question it shares.
_FURTHER_FINDINGS = {
    "sdist": "No package is built from source unless the profile allows it.",
    # What `envspec verify` asks of an environment on disk.
    "drift-added": "Nothing is in the environment that was not there when it was published.",
    "drift-changed": "Every file has the content and the permissions that it was published with.",
    "drift-missing": "Every file that was published is there.",
    "drift-replaced": "Every package has the version that was locked.",
    "drift-script": "The environment script is the one that was published.",
    "drift-toolkit": "CUDA_HOME holds what the toolkit's wheels brought and envspec laid out.",
}


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


class Code(msgspec.Struct, frozen=True):
    """One code: `rule` if a rule of the check yields it, else an error that ends a command with `exit`."""

    code: str
    means: str
    rule: bool
    exit: ErrorExit = ErrorExit.FINDINGS


@cache
def all_codes() -> tuple[Code, ...]:
    """Every code of envspec, by name. A code that is both a rule's and an error's counts as the rule's."""
    found = {row.code: Code(row.code, row.means, False, row.exit) for row in load_table("codes", ErrorRow)}
    found |= {code: Code(code, means, True) for code, means in _FURTHER_FINDINGS.items()}
    found |= {rule.code: Code(rule.code, rule.summary, True) for rule in all_rules()}
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


def _list() -> Iterator[str]:
    codes = all_codes()
    width = max(len(c.code) for c in codes)
    for title, chosen in (
        ("Rules: what a check demands", [c for c in codes if c.rule]),
        ("Errors: what ends a command", [c for c in codes if not c.rule]),
    ):
        yield f"{title}:"
        yield from (f"  {c.code:<{width}}  {c.means}" for c in chosen)
        yield ""
    yield f"envspec explain CODE tells more about {len(explained_codes())} of them."


def _nearest(word: str, codes: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, codes, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else "envspec explain lists all codes"
