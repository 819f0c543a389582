"""METADATA of a wheel that has not been downloaded: the index's own copy (PEP 658), else a ranged read of the wheel.

Kept in envspec's cache by the wheel's hash, since a wheel never changes. What comes from the network is bounded.
"""

from __future__ import annotations

import email.parser
import email.policy
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from envspec.errors import WorldError
from envspec.lock.graph import local_path

if TYPE_CHECKING:
    import requests

    from envspec.lock.graph import ResolvedFile

MAX_METADATA = 4 << 20
_TIMEOUT = (10, 30)
_WORKERS = 12


class WheelMetadata(msgspec.Struct, frozen=True):
    """The parts of METADATA that envspec reads."""

    name: str
    version: str
    requires: tuple[str, ...]
    requires_python: str = ""

    def requirements(self) -> tuple[Requirement, ...]:
        """`Requires-Dist`, parsed; lines that are not valid are left out, as installers do for old wheels."""
        found = []
        for text in self.requires:
            try:
                found.append(Requirement(text))
            except InvalidRequirement:
                continue
        return tuple(found)


def cache_dir() -> Path:
    """Where envspec keeps what it has read from the network: $ENVSPEC_CACHE_DIR, else under XDG_CACHE_HOME."""
    chosen = os.environ.get("ENVSPEC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envspec"


def parse_metadata(text: str) -> WheelMetadata:
    """Read METADATA's text."""
    message = email.parser.Parser(policy=email.policy.compat32).parsestr(text, headersonly=True)
    return WheelMetadata(
        name=str(message.get("Name", "")),
        version=str(message.get("Version", "")),
        requires=tuple(str(v) for v in message.get_all("Requires-Dist", [])),
        requires_python=str(message.get("Requires-Python", "")),
    )


def fetch_metadata(files: Iterable[ResolvedFile], *, offline: bool = False) -> dict[str, WheelMetadata]:
    """METADATA of each wheel, by its sha256. Raises WorldError `network`, `offline` or `wheel-damaged`."""
    wanted = list(files)
    store = cache_dir() / "metadata"
    with ThreadPoolExecutor(_WORKERS) as pool:
        texts = pool.map(lambda file: _text(file, store, offline), wanted)
        return {file.sha256: parse_metadata(text) for file, text in zip(wanted, texts, strict=True)}


def _text(file: ResolvedFile, store: Path, offline: bool) -> str:
    kept = store / f"{file.sha256}.txt"
    if file.sha256:
        try:
            return kept.read_text(encoding="utf-8", errors="replace")
        except OSError:
            pass
    local = local_path(file.url)
    if local is not None:
        return _from_zip(_open(local), file.filename)
    if offline:
        raise WorldError(
            "offline",
            f"the metadata of {file.filename} is not in the cache, and the network was not to be used",
            fix="run once without --offline",
        )
    text = _download(file)
    if file.sha256:
        _keep(kept, text)
    return text


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise WorldError("wheel-unreadable", f"cannot read {path.name}: {error.strerror}", where=str(path)) from None


def _download(file: ResolvedFile) -> str:
    session = _session()
    import requests

    try:
        answer = session.get(f"{file.url}.metadata", timeout=_TIMEOUT, stream=True)
        if answer.status_code == 200:
            return answer.raw.read(MAX_METADATA, decode_content=True).decode("utf-8", "replace")
        return _from_zip(RangeReader(session, file.url), file.filename)
    except (requests.RequestException, OSError) as error:
        raise WorldError(
            "network",
            f"cannot read the metadata of {file.filename}",
            why=type(error).__name__,
            fix="check the network and the proxy variables, then run again",
        ) from None


_sessions: list[requests.Session] = []


def _session() -> requests.Session:
    """One pooled session; it honours the same certificate variable as uv."""
    if not _sessions:
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util.retry import Retry

        session = requests.Session()
        retry = Retry(total=3, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504))
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=_WORKERS, max_retries=retry))
        if os.environ.get("SSL_CERT_FILE"):
            session.verify = os.environ["SSL_CERT_FILE"]
        _sessions.append(session)
    return _sessions[0]


class RangeReader(io.RawIOBase):
    """A remote file as a seekable stream of ranged requests, as far as zipfile needs one."""

    def __init__(self, session: requests.Session, url: str) -> None:
        self._session = session
        self._url = url
        self._at = 0
        answer = session.get(url, headers={"Range": "bytes=0-0"}, timeout=_TIMEOUT, stream=True)
        answer.close()
        answer.raise_for_status()
        if answer.status_code != 206:
            raise OSError("the index does not serve ranges")
        self._size = int(answer.headers["Content-Range"].rsplit("/", 1)[1])

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._at + size)
        if self._at >= end:
            return b""
        answer = self._session.get(
            self._url, headers={"Range": f"bytes={self._at}-{end - 1}"}, timeout=_TIMEOUT, stream=False
        )
        answer.raise_for_status()
        self._at += len(answer.content)
        return answer.content


def _from_zip(stream: io.RawIOBase | io.BufferedReader, filename: str) -> str:
    distribution = "-".join(filename.split("-")[:2])
    try:
        with (
            stream,
            zipfile.ZipFile(stream) as wheel,
            wheel.open(f"{distribution}.dist-info/METADATA") as member,
        ):
            return member.read(MAX_METADATA).decode("utf-8", "replace")
    except (zipfile.BadZipFile, KeyError, EOFError, ValueError) as error:
        raise WorldError("wheel-damaged", f"{filename} is not a wheel: {error}", where=filename) from None


def _keep(path: Path, text: str) -> None:
    """Write into the cache so that another process never sees half a file; a cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError:
        return
