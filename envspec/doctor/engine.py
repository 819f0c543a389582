"""The rows of doctor, and running them. A check that fails is an unknown finding, never a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module

import msgspec

from envspec.host.machine import Host
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, error_words
from envspec.report.findings import Finding, unknown


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the host is looked at for: a profile, if one is named, and where its output is to be."""

    profile: Profile | None = None
    out: str = "out"
    """An absolute path on the host."""

    @property
    def cuda(self) -> tuple[int, int] | None:
        """The CUDA release of the profile's toolkit."""
        if self.profile is None or self.profile.cuda is None:
            return None
        parts = self.profile.cuda.toolkit.split(".")
        return (int(parts[0]), int(parts[1])) if len(parts) > 1 else None


Question = Callable[[Host, Wanted], Iterator[Finding]]


class Check(msgspec.Struct, frozen=True):
    """One check: its name, which is the code of its findings; what it demands; whether it starts other programs."""

    name: str
    question: Question
    slow: bool = False

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.question.__doc__ or "").strip().splitlines()[0]


_CHECKS: list[Check] = []
_MODULES = ("gpu", "variables", "storage", "resources", "compilers")


def check(name: str, *, slow: bool = False) -> Callable[[Question], Question]:
    """Register a question under its name."""

    def register(question: Question) -> Question:
        assert name not in {row.name for row in _CHECKS}, name
        _CHECKS.append(Check(name, question, slow))
        return question

    return register


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check in the order they are run in: as the modules are listed, slow ones last."""
    for name in _MODULES:
        import_module(f"envspec.doctor.checks.{name}")
    return tuple(sorted(_CHECKS, key=lambda row: row.slow))


def run_checks(checks: Iterable[Check], host: Host, wanted: Wanted) -> Iterator[Finding]:
    """The findings of the checks, in order."""
    for row in checks:
        yield from _guarded(row, host, wanted)


def _guarded(row: Check, host: Host, wanted: Wanted) -> Iterator[Finding]:
    try:
        yield from row.question(host, wanted)
    except EnvspecError as error:
        yield unknown(row.name, row.name, f"not decided: {error_words(error)}", fix=error.fix)
    except Exception as error:  # noqa: BLE001 - whatever a strange machine does to a check, the others still run
        yield unknown(
            row.name,
            row.name,
            f"not decided: the check itself failed ({type(error).__name__})",
            evidence=[str(error)[:200]] if str(error) else [],
        )
