"""Rules: what must hold, asked of facts. The rules of `check` and the checks of `doctor` are registered and run here.

A rule is a function whose parameters are annotated with the types of the facts it needs, and whose name is its code:
`def toolkit_mixed(...)` makes the findings `toolkit-mixed`. It yields a finding for each place where its demand is not met.
What it needs is read from its signature; a rule whose facts are missing, and one that fails, is answered "unknown" here,
so that no rule has to think of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TypeVar, get_type_hints

import msgspec

from envspec.report.errors import EnvspecError, error_words
from envspec.report.findings import Finding, allow, unknown

Judge = Callable[..., Iterator[Finding]]
F = TypeVar("F", bound=Judge)


class Missing(msgspec.Struct, frozen=True):
    """Holds facts that could not be had, and why."""

    why: str


class Rule(msgspec.Struct, frozen=True):
    """Describes one rule. `summary` is what it demands, in one sentence; `needs` are the facts that `judge` takes, in this order.

    `slow`: it starts other programs.
    """

    code: str
    summary: str
    needs: tuple[type, ...]
    judge: Judge
    slow: bool = False


class RuleSet:
    """Holds the rules of one command. They register themselves when their modules are imported, which `all` does."""

    def __init__(self, package: str, modules: Sequence[str]) -> None:
        self._package = package
        self._modules = modules
        self._rules: dict[str, Rule] = {}

    def rule(self, summary: str, *, slow: bool = False) -> Callable[[F], F]:
        """Register a function as a rule. Its text for users is `summary`: docstrings are not there under -OO.

        Raises ValueError for a code that is taken already.
        """

        def register(judge: F) -> F:
            code = judge.__name__.replace("_", "-")
            if code in self._rules:
                raise ValueError(f"two rules have the code {code}")
            hints = get_type_hints(judge)
            del hints["return"]
            self._rules[code] = Rule(code, summary, tuple(hints.values()), judge, slow)
            return judge

        return register

    def all(self) -> tuple[Rule, ...]:
        """Return every rule in the order of the modules, slow ones last."""
        for name in self._modules:
            import_module(f"{self._package}.{name}")
        return tuple(sorted(self._rules.values(), key=lambda rule: rule.slow))


def run_rules(
    rules: Iterable[Rule], facts: Mapping[type, object], allowed: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Yield the findings of the rules, in their order; errors of an allowed code become notes."""
    for rule in rules:
        yield from allow(_answer(rule, facts), allowed)


def _answer(rule: Rule, facts: Mapping[type, object]) -> Iterator[Finding]:
    given = [facts.get(need, Missing("it was not collected")) for need in rule.needs]
    lacking = [fact.why for fact in given if isinstance(fact, Missing)]
    if lacking:
        yield unknown(
            rule.code,
            rule.code,
            f"not decided: {rule.summary[0].lower()}{rule.summary[1:].rstrip('.')}",
            evidence=dict.fromkeys(lacking),
            fix="run again where the data can be had",
        )
        return
    try:
        yield from rule.judge(*given)
    except EnvspecError as error:
        yield unknown(rule.code, rule.code, f"not decided: {error_words(error)}", fix=error.fix)
    except Exception as error:  # noqa: BLE001 - whatever strange facts do to one rule, the others still answer
        yield unknown(
            rule.code,
            rule.code,
            f"not decided: the check itself failed ({type(error).__name__})",
            evidence=[str(error)[:200]] if str(error) else [],
        )
