"""Mending a profile: one edit for each finding that has an obvious one, until the check has nothing left to mend.

Edits are made by tomlkit, so that the user's comments, order and layout stay. What has no obvious remedy is left to the
user: a wrong guess in a profile is worse than an error.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envspec.check.match import fitting_versions, match
from envspec.data.compatibility import driver_of_cuda, known_winners
from envspec.data.shipped import is_installed
from envspec.data.toolkit_components import component_of, components
from envspec.fs import write_synced
from envspec.lock.resolve import release_with
from envspec.lock.targets import Target
from envspec.profile import Profile, read_profile
from envspec.report.errors import EnvspecError, UsageError
from envspec.report.findings import Finding, Report
from envspec.uv.run import Uv

_ROUNDS = 6
_RELEASES = 24

Document = tomlkit.TOMLDocument


class Edit(msgspec.Struct, frozen=True):
    """One change: the table and key, and the new value; None removes the key."""

    table: str
    key: str
    value: str | tuple[str, ...] | None
    why: str


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed, and the report of the profile as it is now."""

    difference: tuple[str, ...]
    edits: tuple[Edit, ...]
    report: Report


def mend(path: Path, target: Target, uv: Uv, python: Path, check: Callable[[Profile], Report]) -> FixResult:
    """Mend the profile at `path` in place; write it only if the errors have become fewer."""
    if is_installed(path):
        raise UsageError(
            "profile-shipped",
            f"{path.name} belongs to the installed envspec and is not changed",
            where=str(path),
            fix=f"copy it to a directory of your own: cp {shlex.quote(str(path))} .",
        )
    before = path.read_text(encoding="utf-8")
    text = before
    edits: list[Edit] = []
    profile = read_profile(path)
    first = found = check(profile)
    for _ in range(_ROUNDS):
        proposed = [e for e in _propose(found, profile, target, uv, python) if e not in edits]
        if not proposed:
            break
        document = tomlkit.parse(text)
        for edit in proposed:
            _apply(document, edit)
        edits += proposed
        text = tomlkit.dumps(document)
        profile = read_profile(path, text)
        found = check(profile)
    if text == before or len(found.errors) >= len(first.errors):
        return FixResult(difference=(), edits=(), report=first)
    write_synced(path, text.encode("utf-8"))
    shown = difflib.unified_diff(
        before.splitlines(), text.splitlines(), path.name, path.name, lineterm="", n=2
    )
    return FixResult(difference=tuple(shown), edits=tuple(edits), report=found)


def _apply(document: Document, edit: Edit) -> None:
    table: Any = document.get(edit.table)
    if edit.value is None:
        if table is not None and edit.key in table:
            table.remove(edit.key)
        return
    if table is None:
        table = tomlkit.table()
        document[edit.table] = table
    value: Any = edit.value
    if isinstance(value, tuple):
        value = tomlkit.item(list(value))
    table[edit.key] = value


def _propose(found: Report, profile: Profile, target: Target, uv: Uv, python: Path) -> list[Edit]:
    context = _Context(found, profile, target, uv, python)
    edits: dict[tuple[str, str], Edit] = {}
    for finding in found.errors:
        remedy = _REMEDIES.get(finding.code)
        for edit in remedy(finding, context) if remedy else ():
            edits.setdefault((edit.table, edit.key), edit)
    return list(edits.values())


class _Context:
    """What remedies look at."""

    def __init__(self, report: Report, profile: Profile, target: Target, uv: Uv, python: Path) -> None:
        self.report = report
        self.profile = profile
        self.target = target
        self.uv = uv
        self.python = python

    def pinned(self, name: str) -> bool:
        return any(p.name == name for p in self.profile.packages)

    def version_of(self, name: str) -> str | None:
        """The exact version that the profile pins."""
        for package in self.profile.packages:
            if package.name == name and package.specifier.startswith("=="):
                return package.specifier.removeprefix("==")
        return None


Remedy = Callable[[Finding, _Context], Iterator[Edit]]


def _toolkit_part(finding: Finding, context: _Context) -> Iterator[Edit]:
    """A part of another release: take it from the matched set."""
    if context.profile.cuda is not None:
        if context.pinned(finding.subject):
            yield Edit("packages", finding.subject, None, f"{finding.subject} comes from cuda.toolkit")
        return
    yield from _whole_toolkit(finding, context)


def _whole_toolkit(finding: Finding, context: _Context) -> Iterator[Edit]:
    """Name the release of the compiler that is in the set, and its parts."""
    nvcc = _evidence_version(context.report, "nvidia-cuda-nvcc")
    release = (
        release_with("nvidia-cuda-nvcc", nvcc, context.profile, context.uv, context.python) if nvcc else None
    )
    if release is None:
        return
    parts = (*(row.component for row in components() if row.jit), "cupti")
    yield Edit("cuda", "toolkit", release, f"the release that nvcc {nvcc} is part of")
    yield Edit("cuda", "components", parts, "what just-in-time compilers need")
    for package in context.profile.packages:
        if component_of(package.name) in parts:
            yield Edit("packages", package.name, None, f"{package.name} comes from cuda.toolkit")


def _evidence_version(report: Report, package: str) -> str | None:
    for finding in report.findings:
        for line in finding.evidence:
            if line.startswith(f"{package} "):
                return line.split()[1]
    return None


def _missing_part(finding: Finding, context: _Context) -> Iterator[Edit]:
    component = component_of(finding.subject)
    if context.profile.cuda is None or component is None:
        yield from _whole_toolkit(finding, context)
        return
    have = context.profile.cuda.components
    lacking = [c for f in context.report.errors if f.code == finding.code and (c := component_of(f.subject))]
    yield Edit("cuda", "components", (*have, *(c for c in lacking if c not in have)), finding.message)


def _winner(finding: Finding, context: _Context) -> Iterator[Edit]:
    """Declare winners: known ones, and any for stray files that no package imports."""
    wanted = []
    for one in context.report.errors:
        if one.code != "file-conflict":
            continue
        owners = [line.split()[0] for line in one.chain]
        known = [row.wins for row in known_winners() if row.wins in owners and row.loses in owners]
        stray = all("/" not in path for path in one.evidence)
        wanted += known or ([owners[0]] if stray and owners else [])
    winners = context.profile.winners
    new = tuple(dict.fromkeys(w for w in wanted if w not in winners))
    if new:
        yield Edit("install", "winners", (*winners, *new), "contested paths")


def _fitting_version(finding: Finding, context: _Context) -> Iterator[Edit]:
    """A release of the extension that fits the pinned torch."""
    torch = _torch_of(finding, context)
    if torch is None or any(f.code == "requirement-broken" for f in context.report.errors):
        return  # first let the pins agree with each other
    try:
        table = match(finding.subject, context.target, context.uv, context.python, _RELEASES)
    except EnvspecError:
        return
    fits = fitting_versions(table, torch)
    if fits:
        yield Edit(
            "packages", finding.subject, fits[0], f"the newest release whose symbols torch {torch} has"
        )


def _torch_of(finding: Finding, context: _Context) -> str | None:
    for line in finding.chain:
        if line.startswith("torch "):
            return line.split()[1].partition("+")[0]
    return context.version_of("torch")


def _asked_version(finding: Finding, context: _Context) -> Iterator[Edit]:
    """A pin of the profile that another package contradicts: take what that package asks for."""
    if not context.pinned(finding.subject):
        return
    asked = finding.message.partition(f"asks for {finding.subject}")[2].partition(", the set has")[0]
    try:
        specifiers = list(SpecifierSet(asked))
    except InvalidSpecifier:
        return
    exact = specifiers[0].version if len(specifiers) == 1 and specifiers[0].operator == "==" else ""
    label = next((p.local for p in context.profile.packages if p.name == finding.subject), "")
    value = exact + (f"+{label}" if label else "") if exact else asked
    yield Edit("packages", finding.subject, value, finding.message)


def _driver(finding: Finding, context: _Context) -> Iterator[Edit]:
    major = (context.profile.cuda.toolkit if context.profile.cuda else "13").split(".")[0]
    driver = driver_of_cuda(f"{major}.0")
    if driver:
        yield Edit("gpu", "minimum-driver", driver, finding.message)


_REMEDIES: dict[str, Remedy] = {
    "toolkit-mixed": _toolkit_part,
    "toolkit-headers": _toolkit_part,
    "toolkit-incomplete": _missing_part,
    "file-conflict": _winner,
    "torch-abi": _fitting_version,
    "requirement-broken": _asked_version,
    "driver-minimum": _driver,
}
