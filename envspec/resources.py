"""Templates and shipped profiles, wherever envspec is installed.

In a wheel they lie inside the package; in a checkout beside it.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def directory(name: str) -> Path:
    """The directory of shipped `templates` or `profiles`."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def shipped_profiles() -> tuple[Path, ...]:
    """The profiles that come with envspec, by name."""
    return tuple(sorted(directory("profiles").glob("*.toml")))


def find_profile(text: str) -> Path:
    """The path a user means: a file, or else the name of a shipped profile."""
    path = Path(text)
    if path.exists() or path.suffix == ".toml" or len(path.parts) != 1:
        return path
    for shipped in shipped_profiles():
        if shipped.stem == text:
            return shipped
    return path
