"""The one engine of check and doctor: codes from names, needs from signatures, and texts that survive `python -OO`."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envspec.check.rules import RULES
from envspec.doctor.checks import CHECKS
from envspec.report.errors import ExternalError
from envspec.report.findings import Finding, Severity, error
from envspec.report.rules import Missing, Rule, RuleSet, run_rules


class Weight(int):
    """A fact."""


class Height(int):
    """Another fact."""


def small_set() -> RuleSet:
    rules = RuleSet("tests", ())

    @rules.rule("Starts a program.", slow=True)
    def slow_one(weight: Weight) -> Iterator[Finding]:
        yield from ()

    @rules.rule("Nothing is too heavy.")
    def too_heavy(height: Height, weight: Weight) -> Iterator[Finding]:
        if weight > height:
            yield error("too-heavy", "it", f"{weight} is more than {height}")

    return rules


def test_a_rule_is_known_by_its_name_and_needs_what_its_signature_says() -> None:
    heavy, slow = small_set().all()
    assert (heavy.code, heavy.summary, heavy.needs, heavy.slow) == (
        "too-heavy",
        "Nothing is too heavy.",
        (Height, Weight),
        False,
    )
    assert (slow.code, slow.slow) == ("slow-one", True)


def test_facts_reach_the_parameters_by_their_types() -> None:
    (found,) = run_rules(small_set().all(), {Weight: Weight(9), Height: Height(2)})
    assert found.message == "9 is more than 2"


def test_two_rules_of_one_name_are_refused() -> None:
    rules = small_set()
    with pytest.raises(ValueError, match="two rules have the code too-heavy"):

        @rules.rule("Another one.")
        def too_heavy(weight: Weight) -> Iterator[Finding]:
            yield from ()


def test_a_missing_fact_is_an_unknown_answer_with_the_reason() -> None:
    (found,) = run_rules(small_set().all()[:1], {Weight: Weight(9), Height: Missing("no ruler")})
    assert (found.code, found.severity, found.message, found.evidence) == (
        "too-heavy",
        Severity.UNKNOWN,
        "not decided: nothing is too heavy",
        ("no ruler",),
    )


def test_an_error_inside_of_a_rule_is_an_unknown_answer_with_its_fix() -> None:
    def fails(weight: Weight) -> Iterator[Finding]:
        if weight:
            raise ExternalError("network", "there is none", fix="plug it in")
        yield from ()

    (found,) = run_rules([Rule("fails", "It works.", (Weight,), fails)], {Weight: Weight(1)})
    assert (found.severity, found.message, found.fix) == (
        Severity.UNKNOWN,
        "not decided: there is none (network)",
        "plug it in",
    )


def test_an_allowed_error_is_a_note() -> None:
    facts = {Weight: Weight(9), Height: Height(2)}
    (found,) = run_rules(small_set().all(), facts, frozenset({"too-heavy"}))
    assert (found.severity, found.message) == (Severity.NOTE, "allowed: 9 is more than 2")


def test_a_rule_says_in_one_sentence_what_it_demands() -> None:
    for rule in (*RULES.all(), *CHECKS.all()):
        assert rule.summary.endswith(".") and "\n" not in rule.summary and len(rule.summary) < 130, rule.code
        assert rule.code == rule.judge.__name__.replace("_", "-")


def test_a_rule_makes_findings_of_its_own_code_alone() -> None:
    """By the source: the first argument of what makes findings, directly in the rule."""
    for rule in (*RULES.all(), *CHECKS.all()):
        tree = ast.parse(inspect.getsource(rule.judge))
        named = {
            call.args[0].value
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id in ("error", "warning", "note", "unknown")
            and isinstance(call.args[0], ast.Constant)
        }
        assert named <= {rule.code}, rule.code


def test_texts_for_users_are_there_without_docstrings(tmp_path: Path) -> None:
    for words in (["explain"], ["explain", "torch-abi"], ["doctor", "--list"]):
        plain, optimized = (
            subprocess.run(
                [sys.executable, *flags, "-m", "envspec", *words],
                capture_output=True,
                text=True,
                cwd=tmp_path,
            )
            for flags in ([], ["-OO"])
        )
        assert (optimized.returncode, optimized.stderr) == (0, ""), words
        assert optimized.stdout == plain.stdout and len(plain.stdout) > 200, words
