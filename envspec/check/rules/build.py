"""Short forms for the findings that rules yield."""

from __future__ import annotations

from collections.abc import Iterable

from envspec.findings import Finding, Severity


def error(
    code: str,
    subject: str,
    message: str,
    *,
    evidence: Iterable[str] = (),
    chain: Iterable[str] = (),
    fix: str = "",
) -> Finding:
    """A finding that stops a build."""
    return _finding(Severity.ERROR, code, subject, message, evidence, chain, fix)


def warning(
    code: str,
    subject: str,
    message: str,
    *,
    evidence: Iterable[str] = (),
    chain: Iterable[str] = (),
    fix: str = "",
) -> Finding:
    """A finding that will matter on some machine or some day."""
    return _finding(Severity.WARNING, code, subject, message, evidence, chain, fix)


def note(
    code: str,
    subject: str,
    message: str,
    *,
    evidence: Iterable[str] = (),
    chain: Iterable[str] = (),
    fix: str = "",
) -> Finding:
    """Something worth knowing that is as it should be."""
    return _finding(Severity.NOTE, code, subject, message, evidence, chain, fix)


def unknown(
    code: str,
    subject: str,
    message: str,
    *,
    evidence: Iterable[str] = (),
    chain: Iterable[str] = (),
    fix: str = "",
) -> Finding:
    """The rule could not decide about this subject."""
    return _finding(Severity.UNKNOWN, code, subject, message, evidence, chain, fix)


def counted(number: int, thing: str) -> str:
    """`1 path`, `2 paths`."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _finding(
    severity: Severity,
    code: str,
    subject: str,
    message: str,
    evidence: Iterable[str],
    chain: Iterable[str],
    fix: str,
) -> Finding:
    return Finding(
        code=code,
        severity=severity,
        subject=subject,
        message=message,
        evidence=tuple(evidence),
        chain=tuple(chain),
        fix=fix,
    )
