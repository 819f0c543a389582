"""Looking into a wheel on a server without downloading it: ranged reads of the zip.

A kernel wheel has half a gigabyte; what a check needs of it (the list of files, METADATA, RECORD, the symbol
tables of its libraries) has a few hundred kilobytes. Everything read is bounded, also when the archive lies.
Not here: caches, where URLs come from, checking hashes (a part of a file has none).
"""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from envspec.elf import Elf, ElfError, ElfIncomplete, read_prefix
from envspec.report.errors import ExternalError
from envspec.wheels.access import IndexAccess

# Half of all wheels have a central directory of less than this; of the others the rest is asked for. Those of wheels
# with 10,000 files have about 1 MB.
_TAIL = 12 << 10
_MAX_DIRECTORY = 64 << 20
# A server that ignores ranges sends the whole file; up to here that is taken.
_MAX_WHOLE = 16 << 20
_MAX_TEXT = 32 << 20
# Kernel wheels hold their symbol tables in the first 30 to 200 KB of the compressed member.
_FIRST_READ = 48 << 10
_MAX_ELF_READ = 4 << 20
_MAX_ELF_BYTES = 64 << 20
_STREAM_READ = 16 << 20
_TIMEOUT = (10.0, 60.0)
_LARGE_DIRECTORY = 200 << 10
_HEAD = 8 << 10
_END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2IH")
_ENTRY_SIGNATURE = b"PK\x01\x02"
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Member(NamedTuple):
    """One file of the wheel; sizes in bytes, `crc` the CRC-32 of its content."""

    name: str
    size: int
    compressed_size: int
    crc: int


def new_session() -> requests.Session:
    """A session with a few retries for what passes by itself; share it between wheels of one server."""
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


class RemoteWheel:
    """A wheel (or any zip) at `url`.

    Opening it reads the end of the file, with most of a small wheel's central directory. `bytes_read` counts what came over the
    network, `requests_made` how many requests it took.

    Raises ExternalError: `wheel-unreachable` (no connection, or it broke), `wheel-refused` (the server answered
    with an error), `wheel-no-ranges` (it knows no ranges and the file is too large to take whole),
    `wheel-broken` (the archive is not a zip, contradicts itself or is beyond the bounds).
    """

    def __init__(self, url: str, session: requests.Session | None = None) -> None:
        self._url = url
        self._session = session or new_session()
        self.filename = unquote(urlsplit(url).path.rpartition("/")[2])
        self.bytes_read = 0
        self.requests_made = 0
        self._whole: bytes | None = None
        self.size, self._tail_at, self._tail = self._read_tail()

    @cached_property
    def _infos(self) -> dict[str, zipfile.ZipInfo]:
        return self._read_directory()

    def ends_of_directory(self) -> tuple[str, ...] | None:
        """The names at both ends of a large central directory; None if it is small, and is better read whole.

        Wheels list their files in sorted order, so what both ends have in common, everything between has too. A directory
        of 40,000 files has 6 MB; its ends have 20 KB.
        """
        at = self._tail.rfind(_END_SIGNATURE)
        if at < 0 or len(self._tail) - at < _END.size:
            return None
        _, _, _, _, _, size, offset, _ = _END.unpack_from(self._tail, at)
        if size < _LARGE_DIRECTORY or offset + size > self._tail_at + at:
            return None
        head = tuple(info.filename for info in _entries(self._fetch(offset, _HEAD)))
        return (*head, *self._last_entries) if head and self._last_entries else None

    @cached_property
    def _last_entries(self) -> dict[str, zipfile.ZipInfo]:
        """The entries of the central directory that stand whole in the end of the file that was read first."""
        at = self._tail.rfind(_END_SIGNATURE)
        first = self._tail.find(_ENTRY_SIGNATURE)
        if not 0 <= first < at:
            return {}
        return {info.filename: info for info in _entries(self._tail[first:at])}

    @property
    def members(self) -> tuple[Member, ...]:
        """The files of the wheel in the order of its directory."""
        return tuple(Member(i.filename, i.file_size, i.compress_size, i.CRC) for i in self._infos.values())

    def metadata(self) -> str:
        """The text of the wheel's METADATA."""
        return self._dist_info("METADATA")

    def read(self, name: str, limit: int = _MAX_TEXT) -> bytes:
        """The content of the member `name`, checked against its CRC. Raises KeyError if there is none."""
        info = self._last_entries.get(name) or self._infos[name]
        if info.file_size > limit:
            raise self._broken(f"{name} has {info.file_size} bytes")
        content = b"".join(self._inflate(info, info.compress_size, limit))
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._broken(f"{name} does not have the size or CRC that the directory gives")
        return content

    def stream(self, name: str) -> Iterator[bytes]:
        """The content of the member `name` in pieces of bounded size. Raises KeyError if there is none."""
        info = self._infos[name]
        yield from self._inflate(info, _STREAM_READ, info.file_size)

    def elf(self, name: str, at_most: int = _MAX_ELF_READ) -> Elf:
        """The library `name`, from as little of its beginning as holds its symbols.

        Reads `at_most` bytes of the compressed member; a smaller member is read whole if need be. Raises
        KeyError; ElfIncomplete if the symbols are not in them (`patchelf` moves them to the end of the file);
        ElfError if it is no ELF file or a broken one.
        """
        info = self._infos[name]
        step = _FIRST_READ
        taken = bytearray()
        # Without knowing where the tables are, more is asked for in growing steps.
        pieces = self._inflate(info, step, _MAX_ELF_BYTES, at_most)
        for piece in pieces:
            taken += piece
            try:
                return read_prefix(bytes(taken), info.file_size)
            except ElfIncomplete as incomplete:
                last = incomplete
        if not taken:
            raise ElfError("elf-not-elf", "an empty file")
        raise last

    def _dist_info(self, name: str) -> str:
        # It stands near the end of the directory, as a rule: what was read first is looked at first.
        member = _in_dist_info(self._last_entries, name) or _in_dist_info(self._infos, name)
        if member is None:
            raise self._broken(f"it holds no {name}")
        return self.read(member).decode("utf-8", "replace")

    def _inflate(
        self, info: zipfile.ZipInfo, first: int, limit: int, at_most: int | None = None
    ) -> Iterator[bytes]:
        """The decompressed member, a piece for each read of the network; reads grow from `first` bytes.

        Ends at the end of the member, or after `at_most` compressed bytes. Raises `wheel-broken` beyond
        `limit` decompressed bytes.
        """
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise self._broken(f"{info.filename} is compressed or encrypted in a way that wheels are not")
        inflater = zlib.decompressobj(-zlib.MAX_WBITS) if info.compress_type else None
        # The local header repeats the name and may have another extra field than the directory.
        guess = _LOCAL_HEADER.size + len(info.filename.encode()) + 64
        left = min(info.compress_size, at_most if at_most is not None else info.compress_size)
        start = self._fetch(info.header_offset, min(guess + min(first, left), self.size - info.header_offset))
        if len(start) < _LOCAL_HEADER.size or start[:4] != b"PK\3\4":
            raise self._broken(f"{info.filename} has no local header")
        *_, name_size, extra_size = _LOCAL_HEADER.unpack_from(start)
        at = info.header_offset + _LOCAL_HEADER.size + name_size + extra_size
        compressed = start[at - info.header_offset :][:left]
        total = 0
        step = first
        while True:
            try:
                piece = inflater.decompress(compressed, limit - total + 1) if inflater else compressed
            except zlib.error as error:
                raise self._broken(f"{info.filename}: {error}") from error
            total += len(piece)
            if total > limit:
                raise self._broken(f"{info.filename} is larger than {limit} bytes")
            yield piece
            at += len(compressed)
            left -= len(compressed)
            if left <= 0:
                return
            step = min(step * 4, left, _STREAM_READ)
            compressed = self._fetch(at, step)

    def _read_tail(self) -> tuple[int, int, bytes]:
        """Size of the file, and the offset and bytes of its end."""
        with self._get(f"bytes=-{_TAIL}") as response:
            if response.status_code == 200:
                self._whole = self._take_whole(response)
                return len(self._whole), 0, self._whole
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if not found:
                raise self._broken("the server's answer to a ranged read names no range")
            first, last, size = map(int, found.groups())
            if last != size - 1 or not 0 <= last - first < _TAIL:
                raise self._broken("the server answered with another range")
            return size, first, self._body(response, last - first + 1)

    def _take_whole(self, response: requests.Response) -> bytes:
        """The whole file, from a server that knows no ranges."""
        length = response.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_WHOLE:
            raise ExternalError(
                "wheel-no-ranges",
                "the server cannot send a part of a wheel",
                where=self.filename,
                why=f"it answers a ranged read with the whole file ({length or 'unknown'} bytes)",
                fix="use an index whose server supports HTTP range requests",
            )
        return self._body(response, int(length))

    def _read_directory(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(_Window(self)) as archive:
                return {info.filename: info for info in archive.infolist() if not info.is_dir()}
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError) as error:
            raise self._broken(str(error)) from error

    def _fetch(self, start: int, size: int) -> bytes:
        """Exactly `size` bytes at `start`."""
        if start < 0 or size < 0 or start + size > self.size:
            raise self._broken(f"it refers to bytes {start} to {start + size} of {self.size}")
        if start >= self._tail_at:
            return self._tail[start - self._tail_at :][:size]
        if not size:
            return b""
        with self._get(f"bytes={start}-{start + size - 1}") as response:
            if response.status_code != 206:
                raise self._broken("the server stopped answering ranged reads")
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if not found or (int(found[1]), int(found[2])) != (start, start + size - 1):
                raise self._broken("the server answered with another range")
            return self._body(response, size)

    def _get(self, wanted: str) -> requests.Response:
        self.requests_made += 1
        headers = {"Range": wanted, "Accept-Encoding": "identity"}
        try:
            response = self._session.get(self._url, headers=headers, stream=True, timeout=_TIMEOUT)
        except requests.RequestException as error:
            raise self._unreachable(error) from error
        if response.status_code not in (200, 206):
            status = f"{response.status_code} {response.reason}"
            response.close()
            if response.status_code in (401, 403, 407):
                raise refused(self.filename, status)
            raise ExternalError(
                "wheel-refused", "the server does not give the wheel", where=self.filename, why=status
            )
        return response

    def _body(self, response: requests.Response, size: int) -> bytes:
        """Exactly `size` bytes of the answer, however many the server would send."""
        try:
            body: bytes = response.raw.read(size)
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        self.bytes_read += len(body)
        if len(body) != size:
            raise self._unreachable(f"{len(body)} of {size} bytes came")
        return body

    def _unreachable(self, error: object) -> ExternalError:
        return ExternalError(
            "wheel-unreachable",
            "the wheel cannot be read from its server",
            where=self.filename,
            # The text of a connection error may hold the URL, and a URL may hold a password.
            why=type(error).__name__ if isinstance(error, Exception) else str(error),
            fix="check the network and run again",
        )

    def _broken(self, why: str) -> ExternalError:
        return ExternalError(
            "wheel-broken", "the wheel on the server cannot be read", where=self.filename, why=why
        )


def _in_dist_info(members: Iterable[str], name: str) -> str | None:
    """The member `*.dist-info/name`."""
    for member in members:
        directory, _, file = member.partition("/")
        if file == name and directory.endswith(".dist-info"):
            return member
    return None


def _entries(data: bytes) -> Iterator[zipfile.ZipInfo]:
    """The whole central directory entries that stand in a row at the beginning of `data`; ZIP64 ones end the row."""
    at = 0
    while len(data) - at >= _ENTRY.size and data[at : at + 4] == _ENTRY_SIGNATURE:
        fields = _ENTRY.unpack_from(data, at)
        name, extra, comment = fields[10:13]
        end = at + _ENTRY.size + name + extra + comment
        if end > len(data) or 0xFFFFFFFF in (fields[8], fields[9], fields[16]):
            return
        info = zipfile.ZipInfo(data[at + _ENTRY.size : at + _ENTRY.size + name].decode("utf-8", "replace"))
        info.compress_type = fields[4]
        info.CRC, info.compress_size, info.file_size = fields[7:10]
        info.header_offset = fields[16]
        yield info
        at = end


class _Window(io.RawIOBase):
    """The remote file as `zipfile` wants to see it, to read the directory only."""

    def __init__(self, wheel: RemoteWheel) -> None:
        self._wheel = wheel
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._wheel.size}[whence]
        if base + offset < 0:
            raise ValueError("a seek before the start of the file")
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._wheel.size - self._at, 0)
        size = left if size < 0 else min(size, left)
        if size > _MAX_DIRECTORY:
            raise ValueError(f"a directory of {size} bytes")
        data = self._wheel._fetch(self._at, size)
        self._at += len(data)
        return data
