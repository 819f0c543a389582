"""Who owns a file, without parsing 71,000 rows of RECORD: findings are few, and each names a file or two."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.report.errors import EnvspecError
from envspec.venv.inventory import in_venv

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


class Distribution(msgspec.Struct, frozen=True):
    """One dist-info on disk."""

    name: str
    version: str
    directory: str


def distributions(site: Path) -> Iterator[Distribution]:
    """Every dist-info on disk now, by name."""
    try:
        entries = [e.name for e in os.scandir(site) if e.name.endswith(".dist-info") and e.is_dir()]
    except OSError:
        return
    for directory in sorted(entries):
        # pip renames what it is removing to ~NAME; if it is ended then, that is what remains.
        stem, _, version = directory.removesuffix(".dist-info").rpartition("-")
        if stem and not directory.startswith("~"):
            yield Distribution(canonicalize_name(stem), version, directory)


def installer_of(dist_info: Path) -> str:
    """`uv` or `pip`, as INSTALLER tells; it is text from a file anybody may have written."""
    try:
        handle = os.open(dist_info / "INSTALLER", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            text = file.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return "an unknown installer"
    return text if text.isascii() and text.isalnum() else "an unknown installer"


def owners_of_added(
    added: Iterable[str], site_packages: str, found: Iterable[Distribution], site: Path
) -> tuple[dict[str, list[str]], dict[str, Distribution]]:
    """Added files by the dist-info on disk whose RECORD owns them (empty: nobody's), and the owners by dist-info."""
    wanted = set(added)
    infos = {path.split("/")[-2] for path in wanted if path.endswith(".dist-info/RECORD")}
    files: dict[str, list[str]] = {}
    owners: dict[str, Distribution] = {}
    for distribution in found:
        if distribution.directory not in infos:
            continue
        own = [
            path for path in recorded_paths(site / distribution.directory, site_packages) if path in wanted
        ]
        wanted -= set(own)
        files[distribution.directory] = own
        owners[distribution.directory] = distribution
    if wanted:
        files[""] = sorted(wanted)
    return files, owners


def recorded_paths(dist_info: Path, site_packages: str) -> list[str]:
    """The paths in the venv that a RECORD on disk names; those that leave the venv are left out."""
    from envspec.venv.record import read_record

    try:
        rows = read_record(dist_info / "RECORD")
    except EnvspecError:
        return []
    paths = (in_venv(row.path, site_packages) for row in rows)
    return [path for path in paths if ".." not in path.split("/") and not path.startswith("/")]
