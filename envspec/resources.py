"""Profiles by path or by the name of a shipped one."""

from __future__ import annotations

from pathlib import Path

from envspec.shipped import shipped


def shipped_profiles() -> tuple[Path, ...]:
    """The profiles that come with envspec, by name."""
    return tuple(sorted(shipped("profiles").glob("*.toml")))


def find_profile(text: str) -> Path:
    """The path a user means: a file, or else the name of a shipped profile."""
    path = Path(text)
    # A directory may have the name of a profile: `envspec build h200 --out h200`.
    if path.is_file() or path.suffix == ".toml" or len(path.parts) != 1:
        return path
    for candidate in shipped_profiles():
        if candidate.stem == text:
            return candidate
    return path
