"""Finds the files that come with envspec beside its code: templates and profiles.

They are at the top of a checkout, where people look for them, and inside the package of an installed wheel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed envspec: nobody's to edit."""
    package = Path(__file__).resolve().parent
    return path.resolve().is_relative_to(package)


def shipped(kind: Literal["templates", "profiles"]) -> Path:
    """The directory that holds the shipped files of this kind."""
    package = Path(__file__).resolve().parent
    installed = package / kind
    return installed if installed.is_dir() else package.parent / kind
