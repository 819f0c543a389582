"""What the installed packages require of each other, as their METADATA says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envspec.fs import read_start
from envspec.venv.owners import distributions

_MAX_METADATA = 1 << 20
_REQUIRES = re.compile(r"^Requires-Dist:[ \t]*(.+?)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)


class Requirements:
    """Answers what a package requires, transitively; METADATA is read when it is asked for, extras are left out."""

    def __init__(self, site: Path) -> None:
        self._directories = {d.name: site / d.dist_info for d in distributions(site)}
        self._direct: dict[str, frozenset[str]] = {}
        self._all: dict[str, frozenset[str]] = {}

    def of(self, package: str) -> frozenset[str]:
        """Return the installed packages that `package`, by its normalized name, requires, and what these require; not itself."""
        if package not in self._all:
            found = {package}
            queue = [package]
            for one in queue:
                new = self._directly(one) - found
                found |= new
                queue += sorted(new)
            self._all[package] = frozenset(found - {package})
        return self._all[package]

    def _directly(self, package: str) -> frozenset[str]:
        if package not in self._direct:
            self._direct[package] = frozenset(self._read(package))
        return self._direct[package]

    def _read(self, package: str) -> Iterable[str]:
        directory = self._directories.get(package)
        if directory is None:
            return
        try:
            text = read_start(directory / "METADATA", _MAX_METADATA).decode("utf-8", "replace")
        except OSError:
            return
        head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
        for line in _REQUIRES.findall(head):
            try:
                requirement = Requirement(line)
            except InvalidRequirement:
                continue
            name = canonicalize_name(requirement.name)
            if name in self._directories and (
                requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            ):
                yield name
