"""Where the dynamic loader would find a library: LD_LIBRARY_PATH, then the cache of ldconfig, then the system's directories."""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator

from envspec.host.machine import Host

_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_HEADER = struct.Struct("<20sIIBxxxI12x")
_ENTRY = struct.Struct("<iIIIQ")
_OLD_HEADER, _OLD_ENTRY = 16, 12
_MOST_ENTRIES = 1 << 17
# glibc's ld.so.cache: the low byte says libc6, the next one the ABI.
_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}
_DIRECTORIES = {
    "x86_64": ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    "aarch64": ("/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
}  # fmt: skip


def cached(data: bytes, machine: str) -> dict[str, str]:
    """Sonames and their files in the content of an ld.so.cache, for one machine; nothing if it is not such a file."""
    start = 0
    if data.startswith(_OLD_MAGIC) and len(data) >= _OLD_HEADER:
        entries = int.from_bytes(data[12:16], "little")
        start = _OLD_HEADER + min(entries, _MOST_ENTRIES) * _OLD_ENTRY
        start += -start % 8
    if not data.startswith(_MAGIC, start) or len(data) < start + _HEADER.size:
        return {}
    count = _HEADER.unpack_from(data, start)[1]
    found: dict[str, str] = {}
    for number in range(min(count, _MOST_ENTRIES)):
        at = start + _HEADER.size + number * _ENTRY.size
        if at + _ENTRY.size > len(data):
            break
        flags, key, value, _, _ = _ENTRY.unpack_from(data, at)
        if flags & 0xFFFF == _FLAGS.get(machine):
            found.setdefault(_string(data, start + key), _string(data, start + value))
    return found


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    return data[at:end].decode("utf-8", "replace") if 0 <= at < end else ""


def candidates(host: Host, soname: str) -> Iterator[tuple[str, str]]:
    """Every file of that soname the loader knows, the one it takes first; each with the reason it is looked at."""
    machine = platform.machine()
    for element in host.elements("LD_LIBRARY_PATH"):
        path = f"{element.rstrip('/')}/{soname}"
        if element.startswith("/") and host.exists(path):
            yield path, "LD_LIBRARY_PATH"
    in_cache = cached(host.data("/etc/ld.so.cache") or b"", machine).get(soname)
    if in_cache and host.exists(in_cache):
        yield in_cache, "ldconfig's cache"
    for directory in _DIRECTORIES.get(machine, ()):
        path = f"{directory}/{soname}"
        if path != in_cache and host.exists(path):
            yield path, "the system's directories"


def find(host: Host, soname: str) -> tuple[str, str] | None:
    """The file that is taken, and why; None if the loader would not find it."""
    return next(candidates(host, soname), None)
