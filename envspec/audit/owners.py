"""Who owns a file, without parsing 71,000 rows of RECORD: findings are few, and each names a file or two."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

_QUOTED = re.compile(r"[,\"\n\r]")


class Owners:
    """Looks paths up in the RECORDs of a site-packages directory. `prefix` is its place below the venv."""

    def __init__(self, site_packages: Path, prefix: str) -> None:
        self.site_packages = site_packages
        self.prefix = prefix + "/"

    @cached_property
    def _records(self) -> tuple[tuple[str, bytes], ...]:
        """(`name version`, the bytes of RECORD behind a line break), by name."""
        found = []
        for directory in sorted(self.site_packages.glob("*.dist-info")):
            name, _, version = directory.name.removesuffix(".dist-info").rpartition("-")
            try:
                record = (directory / "RECORD").read_bytes()
            except OSError:
                continue
            found.append((f"{re.sub(r'[-_.]+', '-', name).lower()} {version}", b"\n" + record))
        return tuple(found)

    def of(self, name: str) -> str:
        """`torch 2.11.0` for a path relative to the venv; empty for a file that no RECORD names."""
        inside = name.removeprefix(self.prefix)
        path = inside if name.startswith(self.prefix) else "../" * self.prefix.count("/") + name
        return next(iter(self._with(b"\n" + _as_field(path) + b",")), "")

    def of_directory(self, name: str) -> str:
        """The first package that owns something in a directory relative to the venv."""
        return self.of_prefix(name.removeprefix(self.prefix).rstrip("/") + "/")

    def of_prefix(self, start: str) -> str:
        """The first package with a file in site-packages whose path starts so."""
        return next(iter(self._with(b"\n" + start.encode("utf-8", "surrogateescape"))), "")

    def owns(self, package: str, name: str) -> bool:
        """Whether an installed package's RECORD names a file, given relative to the venv."""
        field = b"\n" + _as_field(name.removeprefix(self.prefix)) + b","
        return any(field in record for title, record in self._records if title.partition(" ")[0] == package)

    def version(self, package: str) -> str:
        """The version of an installed package; empty if it is not there."""
        return next(
            (v for p, _, v in (title.partition(" ") for title, _ in self._records) if p == package), ""
        )

    def bringing(self, library: str) -> tuple[str, ...]:
        """The packages whose RECORD names a file called `library` in some directory."""
        return tuple(self._with(b"/" + _as_field(library) + b","))

    def _with(self, text: bytes) -> list[str]:
        return [title for title, record in self._records if text in record]


def _as_field(path: str) -> bytes:
    """The path as RECORD writes it: a field of CSV."""
    text = '"' + path.replace('"', '""') + '"' if _QUOTED.search(path) else path
    return text.encode("utf-8", "surrogateescape")
