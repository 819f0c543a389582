"""Packages that only work at versions that belong together."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envspec.check.facts import CheckInput, Selection, admits
from envspec.check.rules import RULES
from envspec.data.compatibility import companion_groups
from envspec.report.findings import Finding, error


@RULES.rule("Packages that are released together are at the same version.")
def companions(selection: Selection) -> Iterator[Finding]:
    for group in companion_groups():
        present = {name: v for name in group.members if (v := selection.version(name)) is not None}
        if len(present) < 2:
            continue
        leader = next(name for name in group.members if name in present)
        for name, version in present.items():
            if group.key(name, version) != group.key(leader, present[leader]):
                yield error(
                    "companions",
                    name,
                    f"{name} {version} does not go with {leader} {present[leader]}: {group.why}",
                    chain=(*selection.why(name), *selection.why(leader)),
                    fix=f"pin {name} to the version that goes with {leader}, or remove its pin",
                )


@RULES.rule("What a package asks of another is met, unless the lock records why not.")
def requirement_broken(selection: Selection, given: CheckInput) -> Iterator[Finding]:
    overridden = {o.name for o in given.lock.overrides}
    for name, asks in sorted(selection.asks.items()):
        version = selection.version(name)
        if version is None or name in overridden:
            continue
        for ask in asks:
            if ask.by and ask.specifier != "?" and not admits(ask.specifier, Version(str(version))):
                yield error(
                    "requirement-broken",
                    name,
                    f"{ask.by} {selection.version(ask.by)} asks for {name}{ask.specifier}, the set has {version}",
                    chain=(*selection.why(name), *selection.why(ask.by)),
                    fix=f"let the pins agree: {name}{ask.specifier}, or another {ask.by}",
                )
