"""`envspec why`: who asked for a package."""

from __future__ import annotations

import difflib
from pathlib import Path

from packaging.utils import canonicalize_name

from envspec.check.collect import collect_selection
from envspec.check.facts import dependency_paths
from envspec.check.input import read_input, target_of
from envspec.profile import read_profile
from envspec.report.errors import UsageError
from envspec.report.progress import Progress
from envspec.uv.run import Uv
from envspec.venv.interpreter import resolving_python

_MOST = 50


def run_why(
    package: str, profile_path: Path, python: str | None, offline: bool, progress: Progress
) -> list[str]:
    """One chain a line for every package that asks for it. Raises UsageError `unknown-package`."""
    uv = Uv(offline=offline)
    profile = read_profile(profile_path)
    given = read_input(profile, uv, progress)
    lock = given.lock
    selection = collect_selection(given, target_of(profile, python), uv, resolving_python(profile, uv))
    package = canonicalize_name(package)
    if package not in selection.chosen:
        close = difflib.get_close_matches(package, selection.chosen, n=1)
        others = [p.pin for p in lock.named(package)]
        raise UsageError(
            "unknown-package",
            f"{package} is not in the set"
            + (f" of this target; the lock has {', '.join(others)}" if others else ""),
            where=str(profile.lock_path),
            fix=f"did you mean {close[0]!r}?" if close and not others else "",
        )
    lines = list(dependency_paths(selection, package, _MOST))
    for override in lock.overrides:
        if override.name == package:
            lines.append(f"overridden to {override.version}: {override.reason}")
            lines += [f"  {chain}" for chain in override.chains]
    return lines
