"""METADATA of a wheel that has not been downloaded: the index's own copy (PEP 658), else a ranged read of the wheel.

Kept in envspec's cache by the wheel's hash, since a wheel never changes. What comes from the network is bounded.
"""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement

from envspec.report.errors import ExternalError
from envspec.wheels.cache import NotKept, entry, keep_bytes, read_bytes
from envspec.wheels.file import local_path

if TYPE_CHECKING:
    from envspec.wheels.access import IndexAccess
    from envspec.wheels.file import ResolvedFile

MAX_METADATA = 4 << 20
_TIMEOUT = (10, 30)
_WORKERS = 12


class WheelMetadata(msgspec.Struct, frozen=True, dict=True):
    """Holds the parts of METADATA that envspec reads."""

    name: str
    version: str
    requires: tuple[str, ...]
    requires_python: str = ""
    extras: tuple[str, ...] = ()

    def requirements(self) -> tuple[Requirement, ...]:
        """Return `Requires-Dist`, parsed; lines that are not valid are left out, as installers do for old wheels."""
        return self._parsed

    @cached_property
    def _parsed(self) -> tuple[Requirement, ...]:
        found = []
        for text in self.requires:
            try:
                found.append(Requirement(text))
            except InvalidRequirement:
                continue
        return tuple(found)


def parse_metadata(text: str) -> WheelMetadata:
    """Read METADATA's text. The description, which may be long, stands behind the first empty line and is left out."""
    raw, _ = parse_email(re.split(r"\r?\n\r?\n", text, maxsplit=1)[0])
    return WheelMetadata(
        name=raw.get("name", ""),
        version=raw.get("version", ""),
        requires=tuple(raw.get("requires_dist", ())),
        requires_python=raw.get("requires_python", ""),
        extras=tuple(raw.get("provides_extra", ())),
    )


def fetch_metadata(
    files: Iterable[ResolvedFile], access: IndexAccess, *, offline: bool = False
) -> dict[str, WheelMetadata]:
    """Return METADATA of each wheel, by its sha256.

    Raises ExternalError `network`, `offline` or `wheel-damaged`, and NotKept for a file of unknown address.
    """
    wanted = list(files)
    with ThreadPoolExecutor(_WORKERS) as pool:
        texts = pool.map(lambda file: _text(file, access, offline), wanted)
        return {file.sha256: parse_metadata(text) for file, text in zip(wanted, texts, strict=True)}


def _text(file: ResolvedFile, access: IndexAccess, offline: bool) -> str:
    kept = entry("metadata", file.sha256, ".txt", access.scope)
    with contextlib.suppress(OSError):
        return read_bytes(kept).decode("utf-8", "replace")
    if not file.url:
        raise NotKept(file.filename)
    local = local_path(file.url)
    if local is None and offline:
        raise ExternalError(
            "offline",
            f"the metadata of {file.filename} is not in the cache, and the network was not to be used",
            fix="run once without --offline",
        )
    text = _download(file, access) if local is None else _from_zip(_open(local), file.filename)
    keep_bytes(kept, text.encode("utf-8", "replace"))
    return text


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise ExternalError(
            "wheel-unreadable", f"cannot read {path.name}: {error.strerror}", where=str(path)
        ) from None


def _download(file: ResolvedFile, access: IndexAccess) -> str:
    import requests

    from envspec.wheels.ranged import shared_session
    from envspec.wheels.remote import RemoteWheel

    session = shared_session(access)
    try:
        with session.get(f"{file.url}.metadata", timeout=_TIMEOUT, stream=True) as answer:
            if answer.status_code == 200:
                return answer.raw.read(MAX_METADATA, decode_content=True).decode("utf-8", "replace")
    except (requests.RequestException, OSError) as error:
        raise ExternalError(
            "network",
            f"cannot read the metadata of {file.filename}",
            why=type(error).__name__,
            fix="check the network and the proxy variables, then run again",
        ) from None
    return RemoteWheel(file.url, session).metadata()


def _from_zip(stream: io.BufferedReader, filename: str) -> str:
    distribution = "-".join(filename.split("-")[:2])
    try:
        with (
            stream,
            zipfile.ZipFile(stream) as wheel,
            wheel.open(f"{distribution}.dist-info/METADATA") as member,
        ):
            return member.read(MAX_METADATA).decode("utf-8", "replace")
    except (zipfile.BadZipFile, KeyError, EOFError, ValueError) as error:
        raise ExternalError("wheel-damaged", f"{filename} is not a wheel: {error}", where=filename) from None
