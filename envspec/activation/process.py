"""The environment of a child process: what the script sets, without a shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envspec.activation.settings import Base, settings_of
from envspec.activation.values import ScriptValues
from envspec.host.memory import HostFiles, max_jobs
from envspec.report.errors import UsageError


def process_environment(
    values: ScriptValues,
    generation_dir: Path,
    base_env: Mapping[str, str],
    *,
    host: HostFiles | None = None,
) -> dict[str, str]:
    """Return the environment of a child process: what the script would make of `base_env`.

    Raises UsageError `path-unusable` for a generation at a path that PATH cannot hold.
    """
    settings = settings_of(values)
    generation = generation_dir.resolve()
    places = {
        Base.NONE: "",
        Base.GENERATION: str(generation),
        Base.STATE: str(generation.parent.parent),
    }
    if not _listable(str(generation)):
        raise UsageError(
            "path-unusable",
            "the environment lies at a path that PATH cannot hold",
            where=str(generation),
            why="PATH is a list separated by ':', so a directory with ':' or a line break cannot be in it",
            fix="choose another --out directory",
        )

    env = {name: value for name, value in base_env.items() if name not in settings.cleared}
    for entry in settings.lists:
        front = [places[value.base] + value.text for value in entry.front]
        inherited = env.get(entry.name, "").split(":")
        kept = [element for element in inherited if element and element not in front]
        if entry.without_stubs:
            kept = [element for element in kept if not element.rstrip("/").endswith("/stubs")]
        env[entry.name] = ":".join([*front, *kept])
    if not env.get(settings.computed):
        env[settings.computed] = str(max_jobs(values.memory_per_job, host, headroom=values.memory_headroom))
    for setting in settings.plain:
        env[setting.name] = places[setting.value.base] + setting.value.text
    return env


def _listable(path: str) -> bool:
    return ":" not in path and "\n" not in path
