"""`envspec.json`: what a generation was made from and holds. Written last; without it a generation does not count."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envspec.activate import ScriptValues
from envspec.errors import EnvspecError
from envspec.findings import Finding

MAX_BYTES = 256 << 20


class BuildInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a build gives. Equal inputs and an intact result mean that there is nothing to do."""

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


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Version 1 of the manifest."""

    version: int = 1
    profile: str
    inputs: BuildInputs
    arch: str
    minimum_driver: str
    toolchain: str
    toolkit_packages: tuple[str, ...]
    script: ScriptValues
    uv: str
    packages: tuple[ManifestPackage, ...]
    winners: tuple[tuple[str, str], ...]
    """(path, package) for every path that several packages own with different content."""
    findings: tuple[Finding, ...] = ()
    allowed: tuple[str, ...] = ()


def encode(manifest: Manifest) -> bytes:
    """JSON, indented for people, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest. Raises EnvspecError `manifest-damaged`."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_BYTES), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise EnvspecError(
            "manifest-damaged", f"{path} is not a manifest of this envspec", why=str(error), fix="build again"
        ) from None
