"""The throw-away project in which uv resolves and installs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from envspec.profile import Profile

ROOT = "profile"
"""The name of the project that stands for a profile: uv.lock has it as a package."""

_FAR_FUTURE = '"2100-01-01T00:00:00Z"'


def write_project(
    project: Path,
    profile: Profile,
    *,
    requirements: Sequence[str],
    overrides: Sequence[str],
    any_date: Sequence[str] = (),
) -> None:
    """The `pyproject.toml` that asks uv for what the profile asks. `any_date` names packages to which no date applies."""
    project.mkdir(parents=True)
    uv: list[str] = ["package = false", f"no-build = {'false' if profile.allow_sdists else 'true'}"]
    if profile.allow_sdists:
        # Wheels only, but for the named packages: uv has no such switch for locking, so it is checked afterwards.
        uv[-1] = "no-build = false"
    if profile.exclude_newer:
        uv.append(f"exclude-newer = {json.dumps(profile.exclude_newer)}")
        if any_date:
            later = ", ".join(f"{json.dumps(name)} = {_FAR_FUTURE}" for name in any_date)
            uv.append(f"exclude-newer-package = {{ {later} }}")
    markers = [f"sys_platform == 'linux' and platform_machine == '{m}'" for m in profile.machines]
    uv.append(f"environments = {json.dumps(markers)}")
    uv.append(f"override-dependencies = {json.dumps(list(overrides))}")
    text = [
        "[project]",
        f'name = "{ROOT}"',
        'version = "0"',
        f"requires-python = {json.dumps(profile.python.versions)}",
        f"dependencies = {json.dumps(list(requirements))}",
        "[tool.uv]",
        *uv,
        *index_tables(profile),
        *source_table(profile),
    ]
    (project / "pyproject.toml").write_text("\n".join(text) + "\n", encoding="utf-8")


def source_table(profile: Profile) -> list[str]:
    """`[tool.uv.sources]`: which packages the profile takes from which index."""
    sources = {p.name: p.index for p in profile.packages if p.index}
    lines = [f"{name} = {{ index = {json.dumps(index)} }}" for name, index in sources.items()]
    return ["[tool.uv.sources]", *lines] if lines else []


def index_tables(profile: Profile, *, open_to_all: bool = False) -> list[str]:
    """`[[tool.uv.index]]` for each index of the profile, in order.

    `open_to_all` drops `explicit`: where requirements stand in a file, uv knows no sources, and the hashes decide.
    """
    lines = []
    for index in profile.indexes:
        lines += ["[[tool.uv.index]]", f"name = {json.dumps(index.name)}", f"url = {json.dumps(index.url)}"]
        lines += [
            f"default = {str(index.default).lower()}",
            f"explicit = {str(index.explicit and not open_to_all).lower()}",
        ]
        if index.flat:
            lines.append('format = "flat"')
    return lines
