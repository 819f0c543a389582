"""Runs rules over facts. A rule whose facts are missing is answered "unknown" here, so that no rule has to think of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import msgspec

from envspec.report.findings import Finding, Severity
from envspec.wheels.file import Missing

Check = Callable[..., Iterator[Finding]]


class Rule(msgspec.Struct, frozen=True):
    """One rule: its stable code, the facts it needs (types, in the order of the check's parameters), the check."""

    code: str
    needs: tuple[type, ...]
    check: Check

    @property
    def summary(self) -> str:
        """The first line of the check's docstring: what is demanded."""
        return (self.check.__doc__ or "").strip().splitlines()[0]


_RULES: dict[str, Rule] = {}
_MODULES = ("toolkit", "abi", "platform", "companions", "files", "driver", "provenance")


def rule(code: str, needs: tuple[type, ...]) -> Callable[[Check], Check]:
    """Register a check under its code."""

    def register(check: Check) -> Check:
        assert code not in _RULES, code
        _RULES[code] = Rule(code, needs, check)
        return check

    return register


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    for name in _MODULES:
        import_module(f"envspec.check.rules.{name}")
    return tuple(_RULES[code] for code in sorted(_RULES))


def run_rules(
    rules: Iterable[Rule], facts: Mapping[type, Any], allowed: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """The findings of all rules; an allowed code's errors become notes."""
    for one in rules:
        given = [facts.get(need, Missing("it was not gathered")) for need in one.needs]
        lacking = [fact for fact in given if isinstance(fact, Missing)]
        if lacking:
            yield Finding(
                code=one.code,
                severity=Severity.UNKNOWN,
                subject=one.code,
                message=f"not decided: {one.summary[0].lower()}{one.summary[1:].rstrip('.')}",
                evidence=tuple(dict.fromkeys(fact.why for fact in lacking)),
                fix="run again where the data can be had",
            )
            continue
        for finding in one.check(*given):
            if finding.code in allowed and finding.severity is Severity.ERROR:
                yield msgspec.structs.replace(
                    finding, severity=Severity.NOTE, message=f"allowed: {finding.message}"
                )
            else:
                yield finding
