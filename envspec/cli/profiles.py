"""`envspec profiles`: the shipped profiles."""

from __future__ import annotations

import click
import msgspec

from envspec.cli.options import json_option
from envspec.cli.show import show
from envspec.data.shipped import shipped_profiles


class NamedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One shipped profile."""

    name: str
    path: str


class NamedProfiles(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `profiles`."""

    version: int = 1
    command: str = "profiles"
    profiles: tuple[NamedProfile, ...]


@click.command("profiles")
@json_option
def profiles_command(as_json: bool) -> None:
    """List the shipped profiles, which can be named instead of a path."""
    rows = tuple(NamedProfile(name=path.stem, path=str(path)) for path in shipped_profiles())
    show(
        NamedProfiles(profiles=rows),
        lambda found: (f"{row.name}\t{row.path}" for row in found.profiles),
        as_json=as_json,
    )
