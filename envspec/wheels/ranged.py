"""A file on a server, read in parts: HTTP range requests, each answer checked.

A kernel wheel has half a gigabyte; what a check needs of it has a few hundred kilobytes. Not here: what the file holds,
caches, where URLs come from, checking hashes (a part of a file has none).
"""

from __future__ import annotations

import io
import os
import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from envspec.report.errors import ExternalError
from envspec.wheels.access import IndexAccess

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Half of all wheels have a central directory of less than this; of the others the rest is asked for. Those of wheels
# with 10,000 files have about 1 MB.
_TAIL = 12 << 10
# A server that ignores ranges sends the whole file; up to here that is taken.
_MAX_WHOLE = 16 << 20
_MAX_READ = 64 << 20
_TIMEOUT = (10.0, 60.0)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def new_session() -> requests.Session:
    """Return a session with a few retries for what passes by itself; share it between wheels of one server."""
    session = requests.Session()
    retry = Retry(
        total=3, backoff_factor=0.3, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False
    )
    adapter = HTTPAdapter(max_retries=retry, pool_maxsize=32)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


class _IndexAuth(requests.auth.AuthBase):
    """Sends an index's credentials to its own realm, and those of netrc to theirs."""

    def __init__(self, access: IndexAccess) -> None:
        self._access = access

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = request.url or ""
        known = self._access.of(url)
        pair = (known.user, known.password) if known else requests.utils.get_netrc_auth(url)
        return requests.auth.HTTPBasicAuth(*pair)(request) if pair else request


@cache
def shared_session(access: IndexAccess) -> requests.Session:
    """Return the session of this process for some indexes. It trusts the same certificates as uv ($SSL_CERT_FILE)."""
    session = new_session()
    session.auth = _IndexAuth(access)
    if os.environ.get("SSL_CERT_FILE"):
        session.verify = os.environ["SSL_CERT_FILE"]
    return session


def refused(what: str, status: str) -> ExternalError:
    """Return the error for an index that wants other credentials, or forbids; `status` is `401 Unauthorized`."""
    return ExternalError(
        "index-refused",
        f"the package index refused {what}: {status}",
        fix="give uv the index's credentials: UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD, or netrc",
    )


class RangedFile:
    """Reads parts of the file at `url`. Opening it reads its end, `tail`, which begins at `tail_at`; `size` is in bytes.

    Opening and reading raise ExternalError: `wheel-unreachable` (no connection, or it broke), `index-refused` (it wants other
    credentials), `wheel-refused` (the server answered with an error), `wheel-no-ranges` (it knows no ranges and the file is
    too large to take whole), `wheel-broken` (the answer is not what was asked for).
    """

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url = url
        self._session = session
        self.name = unquote(urlsplit(url).path.rpartition("/")[2])
        self.size, self.tail_at, self.tail = self._read_tail()

    def read(self, start: int, size: int) -> bytes:
        """Return exactly `size` bytes at `start`."""
        if start < 0 or size < 0 or start + size > self.size:
            raise self.broken(f"it refers to bytes {start} to {start + size} of {self.size}")
        if start >= self.tail_at:
            return self.tail[start - self.tail_at :][:size]
        if not size:
            return b""
        with self._get(f"bytes={start}-{start + size - 1}") as response:
            if response.status_code != 206:
                raise self.broken("the server stopped answering ranged reads")
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if not found or (int(found[1]), int(found[2])) != (start, start + size - 1):
                raise self.broken("the server answered with another range")
            return self._body(response, size)

    def open(self) -> RangedReader:
        """Return the file as one that can be read and sought in, without a buffer."""
        return RangedReader(self)

    def broken(self, why: str) -> ExternalError:
        """Return the error that says that the file, or what the server sent of it, makes no sense."""
        return ExternalError(
            "wheel-broken", "the wheel on the server cannot be read", where=self.name, why=why
        )

    def _read_tail(self) -> tuple[int, int, bytes]:
        """Size of the file, and the offset and bytes of its end."""
        with self._get(f"bytes=-{_TAIL}") as response:
            if response.status_code == 200:
                whole = self._take_whole(response)
                return len(whole), 0, whole
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if not found:
                raise self.broken("the server's answer to a ranged read names no range")
            first, last, size = map(int, found.groups())
            if last != size - 1 or not 0 <= last - first < _TAIL:
                raise self.broken("the server answered with another range")
            return size, first, self._body(response, last - first + 1)

    def _take_whole(self, response: requests.Response) -> bytes:
        """The whole file, from a server that knows no ranges."""
        length = response.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_WHOLE:
            raise ExternalError(
                "wheel-no-ranges",
                "the server cannot send a part of a wheel",
                where=self.name,
                why=f"it answers a ranged read with the whole file ({length or 'unknown'} bytes)",
                fix="use an index whose server supports HTTP range requests",
            )
        return self._body(response, int(length))

    def _get(self, wanted: str) -> requests.Response:
        headers = {"Range": wanted, "Accept-Encoding": "identity"}
        try:
            response = self._session.get(self._url, headers=headers, stream=True, timeout=_TIMEOUT)
        except requests.RequestException as error:
            raise self._unreachable(error) from error
        if response.status_code not in (200, 206):
            status = f"{response.status_code} {response.reason}"
            response.close()
            if response.status_code in (401, 403, 407):
                raise refused(self.name, status)
            raise ExternalError(
                "wheel-refused", "the server does not give the wheel", where=self.name, why=status
            )
        return response

    def _body(self, response: requests.Response, size: int) -> bytes:
        """Exactly `size` bytes of the answer, however many the server would send."""
        try:
            body: bytes = response.raw.read(size)
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        if len(body) != size:
            raise self._unreachable(f"{len(body)} of {size} bytes came")
        return body

    def _unreachable(self, error: object) -> ExternalError:
        return ExternalError(
            "wheel-unreachable",
            "the wheel cannot be read from its server",
            where=self.name,
            # The text of a connection error may hold the URL, and a URL may hold a password.
            why=type(error).__name__ if isinstance(error, Exception) else str(error),
            fix="check the network and run again",
        )


class RangedReader(io.RawIOBase):
    """Presents a file on a server as `zipfile` expects one."""

    def __init__(self, file: RangedFile) -> None:
        self._file = file
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise ValueError("a seek before the start of the file")
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._file.size - self._at, 0)
        size = left if size < 0 else min(size, left)
        if size > _MAX_READ:
            raise ValueError(f"a read of {size} bytes")
        data = self._file.read(self._at, size)
        self._at += len(data)
        return data

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
