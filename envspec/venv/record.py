"""What is installed: RECORD of every dist-info in a site-packages directory, and who owns which path.

RECORD is text from a wheel and as trustworthy as that: rows are bounded in number, and a path that leaves the venv is
reported, never followed.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import os
import posixpath
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.report.errors import EnvspecError

MAX_RECORD = 64 << 20
_URLSAFE = str.maketrans("-_", "+/")


class RecordRow(msgspec.Struct, frozen=True):
    """One file: `path` relative to site-packages with `/`, normalized; `sha256` in hex, empty where RECORD has none.

    `size` is -1 where RECORD has none.
    """

    path: str
    sha256: str
    size: int


class InstalledPackage(msgspec.Struct, frozen=True):
    """One distribution on disk. `name` is normalized."""

    name: str
    version: str
    dist_info: str
    rows: tuple[RecordRow, ...]


class Conflict(msgspec.Struct, frozen=True):
    """A path that several packages own with different content: `owners` are (package, sha256) in name order."""

    path: str
    owners: tuple[tuple[str, str], ...]


def installed_packages(site_packages: Path) -> tuple[InstalledPackage, ...]:
    """Every package with a RECORD, by name."""
    found = []
    for entry in os.scandir(site_packages):
        if entry.name.endswith(".dist-info") and entry.is_dir(follow_symlinks=False):
            stem = entry.name.removesuffix(".dist-info")
            name, _, version = stem.rpartition("-")
            rows = read_record(Path(entry.path) / "RECORD")
            found.append(InstalledPackage(canonicalize_name(name), version, entry.name, rows))
    return tuple(sorted(found, key=lambda p: (p.name, p.version)))


def read_record(path: Path) -> tuple[RecordRow, ...]:
    """The rows of one RECORD. Raises EnvspecError `record-damaged`."""
    try:
        if path.stat().st_size > MAX_RECORD:
            raise EnvspecError(
                "record-damaged", f"{path.parent.name}/RECORD is larger than {MAX_RECORD >> 20} MiB"
            )
        text = path.read_bytes().decode("utf-8")
        if '"' not in text and "\r" not in text:  # almost always; csv takes twice as long
            return tuple(_plain_row(line) for line in text.split("\n") if line)
        return tuple(_row(row) for row in csv.reader(io.StringIO(text, newline="")) if row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EnvspecError(
            "record-damaged", f"{path.parent.name} has no readable RECORD: {error}", where=str(path)
        ) from None


def _plain_row(line: str) -> RecordRow:
    row = line.split(",")
    if (
        len(row) == 3
        and row[1][:7] == "sha256="
        and len(row[1]) == 50
        and "./" not in row[0]
        and "/." not in row[0]
    ):
        try:
            return RecordRow(row[0], a2b_base64(row[1][7:].translate(_URLSAFE) + "=").hex(), int(row[2]))
        except ValueError:
            pass
    return _row(row)


def _row(row: list[str]) -> RecordRow:
    path = row[0]
    if "." in path and ("./" in path or "/." in path):
        path = posixpath.normpath(path)
    digest = row[1] if len(row) > 1 else ""
    size = row[2] if len(row) > 2 else ""
    return RecordRow(path, _hex(digest), int(size) if size.isdecimal() else -1)


def _hex(digest: str) -> str:
    """`sha256=47DEQ...` (urlsafe base64 without padding) in hex; empty for another algorithm or none."""
    if not digest.startswith("sha256="):
        return ""
    try:
        return base64.urlsafe_b64decode(digest[7:] + "=").hex()
    except (binascii.Error, ValueError):
        return ""


def conflicts(packages: Iterable[InstalledPackage]) -> tuple[Conflict, ...]:
    """Paths with more than one owner and more than one content."""
    first: dict[str, tuple[str, str]] = {}
    shared: dict[str, list[tuple[str, str]]] = {}
    for package in packages:
        for row in package.rows:
            owner = (package.name, row.sha256)
            other = first.setdefault(row.path, owner)
            if other is not owner:
                shared.setdefault(row.path, [other]).append(owner)
    return tuple(
        Conflict(path, tuple(sorted(who)))
        for path, who in sorted(shared.items())
        if len({sha for _, sha in who}) > 1
    )


def winner(conflict: Conflict, order: Mapping[str, int]) -> tuple[str, str] | None:
    """The owner (package, sha256) that the declared order lets win; None if no owner is declared."""
    declared = [owner for owner in conflict.owners if owner[0] in order]
    return max(declared, key=lambda owner: order[owner[0]], default=None)
