"""The packages that a venv says it has, read without importing anything from it."""

from __future__ import annotations

from pathlib import Path

from packaging.utils import canonicalize_name


def installed_packages(out: Path) -> dict[str, str]:
    """Return names and versions of the distributions in the venv below an output directory, or in a venv itself."""
    for root in (out / "venv", out):
        packages: dict[str, str] = {}
        for info in root.glob("lib/python3.*/site-packages/*.dist-info"):
            name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
            if name:
                packages[canonicalize_name(name)] = version
        if packages:
            return packages
    return {}
