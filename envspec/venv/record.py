"""RECORD, the list of files that a wheel brought. It is text from a wheel and as trustworthy as that: bounded in size,
and no link is followed to it. Paths that leave the venv stand in the rows as they are; who opens files by them looks first.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import posixpath
from binascii import a2b_base64
from pathlib import Path

import msgspec

from envspec.fs import read_start
from envspec.report.errors import EnvspecError

MAX_RECORD = 64 << 20
_URLSAFE = str.maketrans("-_", "+/")


class RecordRow(msgspec.Struct, frozen=True):
    """Describes one file: `path` relative to site-packages with `/`, normalized; `sha256` in hex, empty where RECORD has none.

    `size` is in bytes, -1 where RECORD has none.
    """

    path: str
    sha256: str
    size: int


def read_record(path: Path) -> tuple[RecordRow, ...]:
    """Read the rows of one RECORD. Raises EnvspecError `record-damaged`."""
    try:
        data = read_start(path, MAX_RECORD + 1)
        if len(data) > MAX_RECORD:
            raise EnvspecError(
                "record-damaged", f"{path.parent.name}/RECORD is larger than {MAX_RECORD >> 20} MiB"
            )
        text = data.decode("utf-8")
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
    return RecordRow(path, _hex(digest), int(size) if size.isdecimal() and len(size) < 20 else -1)


def _hex(digest: str) -> str:
    """`sha256=47DEQ...` (urlsafe base64 without padding) in hex; empty for another algorithm or none."""
    if not digest.startswith("sha256="):
        return ""
    try:
        return base64.urlsafe_b64decode(digest[7:] + "=").hex()
    except (binascii.Error, ValueError):
        return ""


def in_venv(path: str, site_packages: str) -> str:
    """Return a RECORD's path, relative to the venv instead of site-packages, which lies at `site_packages` in it."""
    up = "../" * (site_packages.count("/") + 1)
    return path.removeprefix(up) if path.startswith(up) else f"{site_packages}/{path}"
