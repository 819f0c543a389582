"""Packages that only work at versions that belong together."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet

from envspec.check.facts import CheckInput, Selection, admits
from envspec.check.rules import RULES
from envspec.data.compatibility import companion_groups
from envspec.profile import PackageRequest
from envspec.report.findings import Finding, error
from envspec.report.remedies import SetKey


@RULES.rule("Packages that are released together are at the same version.")
def companions(selection: Selection) -> Iterator[Finding]:
    for group in companion_groups():
        present = {name: v for name in group.members if (v := selection.version(name)) is not None}
        if len(present) < 2:
            continue
        leader = next(name for name in group.members if name in present)
        for name, version in present.items():
            if _declares_range(selection, name, leader):
                continue  # it says itself which releases will do, and torch-abi looks at its symbols
            if group.key(name, version) != group.key(leader, present[leader]):
                yield error(
                    "companions",
                    name,
                    f"{name} {version} does not go with {leader} {present[leader]}: {group.why}",
                    dependency_paths=(*selection.why(name), *selection.why(leader)),
                    fix=f"pin {name} to the version that goes with {leader}, or remove its pin",
                )


def _declares_range(selection: Selection, name: str, leader: str) -> bool:
    """Return whether a package declares a range of the leader's versions that admits the one in the set."""
    version = selection.version(leader)
    declared = [one.specifier for one in selection.required_by.get(leader, ()) if one.by == name]
    ranges = [text for text in declared if text not in ("", "?") and "==" not in text]
    return version is not None and bool(ranges) and all(admits(text, version) for text in ranges)


@RULES.rule("What a package asks of another is met, unless the lock records why not.")
def requirement_broken(selection: Selection, given: CheckInput) -> Iterator[Finding]:
    overridden = {o.name for o in given.lock.overrides}
    for name, requirers in sorted(selection.required_by.items()):
        version = selection.version(name)
        if version is None or name in overridden:
            continue
        for one in requirers:
            if one.by and one.specifier != "?" and not admits(one.specifier, version):
                request = next((p for p in given.profile.packages if p.name == name), None)
                yield error(
                    "requirement-broken",
                    name,
                    f"{one.by} {selection.version(one.by)} asks for {name}{one.specifier}, the set has {version}",
                    dependency_paths=(*selection.why(name), *selection.why(one.by)),
                    fix=f"let the pins agree: {name}{one.specifier}, or another {one.by}",
                    remedies=[_agree(request, one.specifier)] if request is not None else [],
                )


def _agree(request: PackageRequest, specifier: str) -> SetKey:
    """Return the pin of a package as another package requires it; a label such as +cu130 stays."""
    (first, *more) = SpecifierSet(specifier)
    exact = first.operator == "==" and not more and not first.version.endswith(".*")
    label = f"+{request.local}" if request.local else ""
    return SetKey(f"packages.{request.name}", f"{first.version}{label}" if exact else specifier)
