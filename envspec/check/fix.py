"""Changing a profile by the remedies of findings, until the check has no error left that carries one.

Only what rules state as data is applied; what a finding says in words is for people. Changes are made by tomlkit, so that
the user's comments, order and layout stay. What has no remedy is left to the user: a wrong guess in a profile is worse than
an error.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from envspec.check.match import fitting_versions, match
from envspec.data.shipped import is_installed
from envspec.data.toolkit_components import component_of, package_of
from envspec.fs import write_synced
from envspec.lock.resolve import release_with
from envspec.lock.targets import Target
from envspec.profile import Profile, read_profile
from envspec.profile.load import OLD_KEYS
from envspec.report.errors import EnvspecError, UsageError
from envspec.report.findings import Report
from envspec.report.remedies import (
    AddToList,
    Remedy,
    RemoveKey,
    SetKey,
    TakeFittingRelease,
    TakeToolkit,
)
from envspec.uv.run import Uv

_ROUNDS = 6
_RELEASES = 24


class _Change(msgspec.Struct, frozen=True):
    """One change of the profile's text: a dotted key and its new value; None removes the key."""

    key: str
    value: str | tuple[str, ...] | None


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the lines of a unified diff of the profile, none if it was left alone, and the report of the profile as it is now."""

    difference: tuple[str, ...]
    report: Report


def fix_profile(
    path: Path, target: Target, uv: Uv, python: Path, check: Callable[[Profile], Report]
) -> FixResult:
    """Change the profile at `path` by the remedies of its errors; write it only if the errors have become fewer.

    Raises UsageError `profile-shipped` for a profile that belongs to the installed envspec, and what reading it raises.
    """
    if is_installed(path):
        raise UsageError(
            "profile-shipped",
            f"{path.name} belongs to the installed envspec and is not changed",
            where=str(path),
            fix=f"copy it to a directory of your own: cp {shlex.quote(str(path))} .",
        )
    before = path.read_text(encoding="utf-8")
    text = before
    done: set[_Change] = set()
    profile = read_profile(path)
    first = found = check(profile)
    for _ in range(_ROUNDS):
        changes = [c for c in _changes(found, _LookUp(profile, target, uv, python)) if c not in done]
        if not changes:
            break
        done.update(changes)
        text = _changed(text, changes, profile)
        profile = read_profile(path, text)
        found = check(profile)
    if text == before or len(found.errors) >= len(first.errors):
        return FixResult(difference=(), report=first)
    write_synced(path, text.encode("utf-8"))
    shown = difflib.unified_diff(
        before.splitlines(), text.splitlines(), path.name, path.name, lineterm="", n=2
    )
    return FixResult(difference=tuple(shown), report=found)


class _LookUp(msgspec.Struct, frozen=True):
    """What looking up a release needs."""

    profile: Profile
    target: Target
    uv: Uv
    python: Path

    def toolkit_with(self, nvcc: str) -> str | None:
        return release_with(package_of("nvcc"), nvcc, self.profile, self.uv, self.python)

    def release_fitting(self, package: str, torch: str) -> str | None:
        try:
            table = match(package, self.target, self.uv, self.python, _RELEASES, profile=self.profile)
        except EnvspecError:
            return None
        return next(iter(fitting_versions(table, torch)), None)


def _changes(found: Report, look_up: _LookUp) -> list[_Change]:
    """Return what to change, one change a key. Lists grow by what all findings add to them."""
    remedies = tuple(dict.fromkeys(r for finding in found.errors for r in finding.remedies))
    changes: dict[str, _Change] = {}
    for change in _plain(remedies, look_up.profile):
        if isinstance(change.value, tuple):
            changes[change.key] = change
        else:
            changes.setdefault(change.key, change)
    for remedy in remedies:
        if isinstance(remedy, TakeToolkit):
            for change in _whole_toolkit(remedy, look_up):
                changes.setdefault(change.key, change)
    if any(key.startswith("packages.") for key in changes):
        return list(changes.values())  # first let the pins agree with each other
    for remedy in remedies:
        if isinstance(remedy, TakeFittingRelease):
            version = look_up.release_fitting(remedy.package, remedy.torch)
            if version is not None:
                changes.setdefault(
                    f"packages.{remedy.package}", _Change(f"packages.{remedy.package}", version)
                )
    return list(changes.values())


def _plain(remedies: Iterable[Remedy], profile: Profile) -> Iterator[_Change]:
    lists = {
        "cuda.components": profile.cuda.components if profile.cuda else (),
        "install.precedence": profile.precedence,
    }
    for remedy in remedies:
        if isinstance(remedy, SetKey):
            yield _Change(remedy.key, remedy.value)
        elif isinstance(remedy, RemoveKey):
            yield _Change(remedy.key, None)
        elif isinstance(remedy, AddToList):
            there = lists[remedy.key]
            lists[remedy.key] = (*there, *(v for v in remedy.values if v not in there))
            yield _Change(remedy.key, lists[remedy.key])


def _whole_toolkit(remedy: TakeToolkit, look_up: _LookUp) -> Iterator[_Change]:
    """Name the release that holds this nvcc, and its parts, which nobody then has to pin."""
    release = look_up.toolkit_with(remedy.nvcc)
    if release is None:
        return
    yield _Change("cuda.toolkit", release)
    yield _Change("cuda.components", remedy.components)
    for package in look_up.profile.packages:
        if component_of(package.name) in remedy.components:
            yield _Change(f"packages.{package.name}", None)


def _changed(text: str, changes: Iterable[_Change], profile: Profile) -> str:
    document = tomlkit.parse(text)
    for change in changes:
        _apply(document, change, profile)
    return tomlkit.dumps(document)


def _apply(document: tomlkit.TOMLDocument, change: _Change, profile: Profile) -> None:
    section, _, key = change.key.partition(".")
    table: Any = document.get(section)
    if change.value is None:
        if table is not None and key in table:
            table.remove(key)
        return
    if table is None:
        table = tomlkit.table()
        document[section] = table
    value: Any = list(change.value) if isinstance(change.value, tuple) else change.value
    if section == "packages" and any(p.name == key and (p.extras or p.index) for p in profile.packages):
        _set_version(table, key, value)
        return
    for old, new in OLD_KEYS.items():
        if new == change.key and (name := old.partition(".")[2]) in table:
            table.remove(name)
    table[key] = tomlkit.item(value)


def _set_version(table: Any, key: str, version: str) -> None:
    """Set the version of a package that is a table, here or in a profile that this one extends: the rest of it stays."""
    if isinstance(table.get(key), dict):
        table[key]["version"] = version
    else:
        table[key] = tomlkit.inline_table()
        table[key]["version"] = version
