"""`envspec.json`: what a generation was made from and holds. Written last; without it a generation does not count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from envspec import __version__
from envspec.activation.script import render_script, script_sha256
from envspec.activation.values import ScriptValues
from envspec.host.python import minor_of
from envspec.report.errors import EnvspecError
from envspec.report.findings import Finding
from envspec.venv.inventory import FileRow, StatCache, environment_digest

VERSION = 1
MAX_BYTES = 512 << 20


class BuildInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Holds everything that decides what a build gives. Equal inputs and an intact result mean that there is nothing to do."""

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
    """Describes one installed package and the file it came from."""

    name: str
    version: str
    file: str
    sha256: str
    size: int = 0


class TreeRow(msgspec.Struct, frozen=True, array_like=True):
    """Describes one file or link of the toolkit tree, with the package that brought it (`envspec` for what envspec made)."""

    path: str
    sha256: str
    target: str
    owner: str


class ManifestHead(msgspec.Struct, frozen=True, kw_only=True):
    """Holds all of a manifest but the lists of files. Reading it skips those."""

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
    neutral_script_sha256: str = ""
    """The hash of the script without the profile's name, which the digest covers; empty in older manifests."""
    uv: str
    packages: tuple[ManifestPackage, ...]
    winners: tuple[tuple[str, str], ...]
    """(path, package) for every path that several packages own with different content."""
    precedence: tuple[str, ...] | None = None
    """The profile's list of packages whose files win; None in a manifest that was written before it was kept."""
    findings: tuple[Finding, ...] = ()
    allowed: tuple[str, ...] = ()


class Manifest(ManifestHead, frozen=True, kw_only=True):
    """Holds version 1 of the manifest. Paths in `files` are relative to the venv, those in `toolkit` to CUDA_HOME."""

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
    """Read and check a whole manifest. The digest that stands in it is compared with the one of its rows.

    Raises EnvspecError `manifest-damaged`.
    """
    manifest = _read(path, Manifest)
    computed = _computed_digest(manifest)
    if computed is not None and computed != manifest.digest:
        raise EnvspecError(
            "manifest-damaged",
            f"{path} was changed: its digest is not that of its rows",
            why=f"it says {manifest.digest}, and its rows give {computed}",
            fix="build again",
        )
    return manifest


def digest_of(manifest: Manifest) -> str:
    """Return the environment digest of the rows of a manifest, which has the hash of the neutral script."""
    return environment_digest(
        manifest.files,
        python_minor=minor_of(manifest.inputs.python),
        machine=manifest.inputs.machine,
        toolchain=hashlib.sha256(msgspec.json.encode(manifest.toolkit)).hexdigest(),
        script_sha256=manifest.neutral_script_sha256,
    )


def _computed_digest(manifest: Manifest) -> str | None:
    """Return the digest of the rows; None where an older envspec kept no hash of the neutral script, and wrote another one."""
    if not manifest.neutral_script_sha256:
        rendered = hashlib.sha256(render_script(manifest.script).encode()).hexdigest()
        if rendered != manifest.script_sha256 and manifest.inputs.envspec != __version__:
            return None
        neutral = script_sha256(manifest.script)
        manifest = msgspec.structs.replace(manifest, neutral_script_sha256=neutral)
    return digest_of(manifest)


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
