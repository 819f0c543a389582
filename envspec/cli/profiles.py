"""`envspec profiles`: the shipped profiles."""

from __future__ import annotations

import click
import msgspec

from envspec.cli.options import json_option
from envspec.cli.show import show
from envspec.data.shipped import PROFILE_SCHEMA, shipped_profiles


class NamedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One shipped profile."""

    name: str
    path: str


class NamedProfiles(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `profiles`."""

    version: int = 1
    command: str = "profiles"
    profiles: tuple[NamedProfile, ...]
    schema: str
    """The path of the JSON schema of profiles."""


@click.command("profiles")
@click.option("--schema", is_flag=True, help="Print the path of the JSON schema of profiles, for editors.")
@json_option
def profiles_command(schema: bool, as_json: bool) -> None:
    """List the shipped profiles, which can be named instead of a path."""
    rows = tuple(NamedProfile(name=path.stem, path=str(path)) for path in shipped_profiles())
    found = NamedProfiles(profiles=rows, schema=str(PROFILE_SCHEMA))
    lines = [found.schema] if schema else [f"{row.name}\t{row.path}" for row in rows]
    show(found, lambda _: lines, as_json=as_json)
