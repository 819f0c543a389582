"""`envspec why`: what requires a package."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import click
import msgspec
from packaging.utils import canonicalize_name

from envspec.check.collect import collect_selection
from envspec.check.facts import dependency_paths
from envspec.check.input import read_input, target_of
from envspec.cli.options import json_option, offline_option, profile_argument, python_option
from envspec.cli.progress import make_progress
from envspec.cli.show import show
from envspec.data.shipped import find_profile
from envspec.lock.model import OverrideRecord
from envspec.profile import read_profile
from envspec.report.errors import UsageError
from envspec.uv.run import Uv
from envspec.venv.interpreter import resolving_python

_MOST = 50


class Requirers(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `why`. Each of `paths` leads from the package to the profile."""

    version: int = 1
    command: str = "why"
    package: str
    paths: tuple[str, ...]
    overrides: tuple[OverrideRecord, ...]


@click.command("why")
@click.argument("package")
@profile_argument
@python_option
@json_option
@offline_option
def why_command(package: str, profile: str, python: str | None, as_json: bool, offline: bool) -> None:
    """Show what requires PACKAGE, up to PROFILE."""
    uv = Uv(offline=offline)
    asked = read_profile(find_profile(profile))
    given = read_input(asked, uv, make_progress())
    lock = given.lock
    selection = collect_selection(given, target_of(asked, python), uv, resolving_python(asked, uv))
    name = canonicalize_name(package)
    if name not in selection.chosen:
        close = difflib.get_close_matches(name, selection.chosen, n=1)
        others = [p.pin for p in lock.named(name)]
        raise UsageError(
            "unknown-package",
            f"{name} is not in the set"
            + (f" of this target; the lock has {', '.join(others)}" if others else ""),
            where=str(asked.lock_path),
            fix=f"did you mean {close[0]!r}?" if close and not others else "",
        )
    found = Requirers(
        package=name,
        paths=dependency_paths(selection, name, _MOST),
        overrides=tuple(o for o in lock.overrides if o.name == name),
    )
    show(found, _lines, as_json=as_json)


def _lines(found: Requirers) -> Iterator[str]:
    """Yield one line for each path to the profile, then what overrides the version."""
    yield from found.paths
    for override in found.overrides:
        yield f"overridden to {override.version}: {override.reason}"
        yield from (f"  {path}" for path in override.dependency_paths)
