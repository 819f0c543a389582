"""`envspec profiles`: the shipped profiles, the stacks among them, and the GPUs that `init` knows."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from envspec.cli.options import json_option
from envspec.cli.show import show
from envspec.data.gpus import known_gpus
from envspec.data.shipped import PROFILE_SCHEMA, shipped_profiles
from envspec.profile.starter import stacks


class NamedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one shipped profile. `title` is empty for one that only changes another one's GPU."""

    name: str
    path: str
    title: str = ""


class NamedGpu(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one GPU or series, and the architecture that kernels for it are compiled for."""

    name: str
    arch: str
    also: tuple[str, ...]


class NamedProfiles(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `profiles`."""

    version: int = 1
    command: str = "profiles"
    profiles: tuple[NamedProfile, ...]
    gpus: tuple[NamedGpu, ...]
    schema: str
    """The path of the JSON schema of profiles."""


@click.command("profiles")
@click.option("--schema", is_flag=True, help="Print the path of the JSON schema of profiles, for editors.")
@json_option
def profiles_command(schema: bool, as_json: bool) -> None:
    """List the shipped profiles and stacks, and the GPUs that `envspec init` knows."""
    titles = {stack.name: stack.title for stack in stacks()}
    profiles = tuple(
        NamedProfile(name=path.stem, path=str(path), title=titles.get(path.stem, ""))
        for path in shipped_profiles()
    )
    gpus = tuple(NamedGpu(name=row.name, arch=str(row.compiles_for), also=row.also) for row in known_gpus())
    found = NamedProfiles(profiles=profiles, gpus=gpus, schema=str(PROFILE_SCHEMA))
    show(found, lambda result: [result.schema] if schema else _lines(result), as_json=as_json)


def _lines(found: NamedProfiles) -> Iterator[str]:
    yield "stacks (envspec init --stack NAME, or envspec build NAME):"
    for row in found.profiles:
        if row.title:
            yield f"  {row.name:<13}  {row.title}"
    others = [row.name for row in found.profiles if not row.title]
    yield f"the same as rtx-pro-6000 for another GPU: {', '.join(others)}"
    yield "GPUs (envspec init --gpu NAME):"
    for gpu in found.gpus:
        yield f"  {gpu.arch:<6}  {gpu.name}" + (f" ({', '.join(gpu.also)})" if gpu.also else "")
