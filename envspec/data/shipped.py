"""Finds the files that come with envspec beside its code: templates and profiles.

They are at the top of a checkout, where people look for them, and inside the package of an installed wheel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

PROFILE_SCHEMA = Path(__file__).resolve().parent / "profile.schema.json"
"""The JSON schema of profiles, which `scripts/make_schema.py` makes from the types of their keys."""


def is_installed(path: Path) -> bool:
    """Tell whether a file belongs to an installed envspec, so that nobody should edit it."""
    package = Path(__file__).resolve().parent.parent
    return path.resolve().is_relative_to(package)


def shipped(kind: Literal["templates", "profiles"]) -> Path:
    """Return the directory that holds the shipped files of this kind."""
    package = Path(__file__).resolve().parent.parent
    installed = package / kind
    return installed if installed.is_dir() else package.parent / kind


def shipped_profiles() -> tuple[Path, ...]:
    """Return the profiles that come with envspec, by name."""
    return tuple(sorted(shipped("profiles").glob("*.toml")))


def find_profile(text: str) -> Path:
    """Return the path a user means: a file, or else the name of a shipped profile."""
    path = Path(text)
    # A directory may have the name of a profile: `envspec build h200 --out h200`.
    if path.is_file() or path.suffix == ".toml" or len(path.parts) != 1:
        return path
    for candidate in shipped_profiles():
        if candidate.stem == text:
            return candidate
    return path
