"""What removes the cause of a finding, as data: made by the rule that knows it and shown in `fix:`. `check --fix`
applies those that change the profile.

Three kinds: a change of the profile that is fully known; one for which something has to be looked up first (which release
fits), where the data says what to look up; and a command. Nobody reads a remedy back out of the words of a finding.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import msgspec


class SetKey(msgspec.Struct, frozen=True, tag_field="kind", tag="set-key"):
    """Give a key of the profile this value. `key` is dotted: `gpu.minimum-driver`, `packages.torch`."""

    key: str
    value: str


class RemoveKey(msgspec.Struct, frozen=True, tag_field="kind", tag="remove-key"):
    """Take a key out of the profile, whose value then comes from `instead`."""

    key: str
    instead: str


class AddToList(msgspec.Struct, frozen=True, tag_field="kind", tag="add-to-list"):
    """Add values to a list of the profile, behind those that are there already."""

    key: str
    values: tuple[str, ...]


class TakeToolkit(msgspec.Struct, frozen=True, tag_field="kind", tag="take-toolkit"):
    """Look up the CUDA toolkit release that holds this very version of nvcc, and take these components from it."""

    nvcc: str
    components: tuple[str, ...]


class TakeFittingRelease(msgspec.Struct, frozen=True, tag_field="kind", tag="take-fitting-release"):
    """Look up the newest release of an extension whose symbols a torch release has, and pin it."""

    package: str
    torch: str


class RunCommand(msgspec.Struct, frozen=True, tag_field="kind", tag="run-command"):
    """Run a command. `purpose` is what it does, in a few words."""

    command: tuple[str, ...]
    purpose: str


Remedy = SetKey | RemoveKey | AddToList | TakeToolkit | TakeFittingRelease | RunCommand


def words_of(remedies: Iterable[Remedy]) -> str:
    """Return remedies as a person reads them in a line that begins with `fix:`."""
    return "; ".join(map(_words, remedies))


def _words(remedy: Remedy) -> str:
    if isinstance(remedy, SetKey):
        return f'set {remedy.key} = "{remedy.value}" in the profile'
    if isinstance(remedy, RemoveKey):
        return f"remove {remedy.key} from the profile, so that it comes from {remedy.instead}"
    if isinstance(remedy, AddToList):
        values = ", ".join(f'"{value}"' for value in remedy.values)
        return f"add {values} to {remedy.key} of the profile"
    if isinstance(remedy, TakeToolkit):
        return f"name the toolkit release of nvcc {remedy.nvcc} as cuda.toolkit (envspec check --fix looks it up)"
    if isinstance(remedy, TakeFittingRelease):
        return f"pin a version that fits: envspec match {remedy.package} --torch {remedy.torch}"
    return f"{remedy.purpose}: {shlex.join(remedy.command)}"
