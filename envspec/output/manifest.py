"""`envspec.json`: what a generation was made from and holds. Written last; without it a generation does not count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from envspec.activation.values import ScriptValues
from envspec.report.errors import EnvspecError
from envspec.report.findings import Finding
from envspec.venv.inventory import FileRow, StatCache

VERSION = 1
MAX_BYTES = 512 << 20


class BuildInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a build gives. Equal inputs and an intact result mean that there is nothing to do."""

    profile: str
    profile_digest: str
    lock_digest: str
    python: str
    python_path: str
    machine: str
    envspec: str
    layout: int
    script_digest: str
    allowed: tuple[str, ...] = ()


class ManifestPackage(msgspec.Struct, frozen=True):
    """One installed package and the file it came from."""

    name: str
    version: str
    file: str
    sha256: str
    size: int = 0


class TreeRow(msgspec.Struct, frozen=True, array_like=True):
    """One file or link of the toolkit tree, with the package that brought it (`envspec` for what envspec made)."""

    path: str
    sha256: str
    target: str
    owner: str


class ManifestHead(msgspec.Struct, frozen=True, kw_only=True):
    """All of a manifest but the lists of files. Reading it skips those."""

    version: int = VERSION
    digest: str
    profile: str
    built: str
    """RFC 3339, UTC. Not part of the digest."""
    inputs: BuildInputs
    arch: str
    minimum_driver: str
    toolchain: str
    toolkit_packages: tuple[str, ...]
    script: ScriptValues
    script_sha256: str
    uv: str
    packages: tuple[ManifestPackage, ...]
    winners: tuple[tuple[str, str], ...]
    """(path, package) for every path that several packages own with different content."""
    precedence: tuple[str, ...] | None = None
    """The profile's list of packages whose files win; None in a manifest that was written before it was kept."""
    findings: tuple[Finding, ...] = ()
    allowed: tuple[str, ...] = ()


class Manifest(ManifestHead, frozen=True, kw_only=True):
    """Version 1 of the manifest. Paths in `files` are relative to the venv, those in `toolkit` to CUDA_HOME."""

    toolkit: tuple[TreeRow, ...]
    files: tuple[FileRow, ...]


M = TypeVar("M", bound=ManifestHead)


def encode(manifest: Manifest) -> bytes:
    """Return a manifest as JSON for people and programs: the head indented, the lists with a row a line."""
    head = msgspec.json.encode(msgspec.structs.replace(manifest, toolkit=(), files=()))
    text = msgspec.json.format(head, indent=1)
    return text.replace(b'"toolkit": []', b'"toolkit": ' + _lines(manifest.toolkit), 1).replace(
        b'"files": []', b'"files": ' + _lines(manifest.files), 1
    ) + b"\n"  # fmt: skip


def _lines(rows: Sequence[TreeRow | FileRow]) -> bytes:
    return b"[\n" + b",\n".join(msgspec.json.encode(row) for row in rows) + b"]" if rows else b"[]"


def read_manifest(path: Path) -> Manifest:
    """Read and check a whole manifest. Raises EnvspecError `manifest-damaged`."""
    return _read(path, Manifest)


def read_head(path: Path) -> ManifestHead:
    """Read a manifest without its lists of files. Raises EnvspecError `manifest-damaged`."""
    return _read(path, ManifestHead)


def _read(path: Path, kind: type[M]) -> M:
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(MAX_BYTES), type=kind)
        if found.version != VERSION:
            raise EnvspecError("manifest-damaged", f"it has version {found.version}, not {VERSION}")
        return found
    except (OSError, msgspec.DecodeError, RecursionError, EnvspecError) as error:
        raise EnvspecError(
            "manifest-damaged", f"{path} is not a manifest of this envspec", why=str(error), fix="build again"
        ) from None


def read_stat_cache(path: Path) -> StatCache:
    """Read the stat cache from the day of publishing; it is empty where there is none that can be read."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=StatCache)
    except (OSError, msgspec.DecodeError):
        return StatCache((), ())
