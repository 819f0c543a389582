"""Where the dynamic loader finds libraries: LD_LIBRARY_PATH, the cache of ldconfig, and the system's directories.

The form of the cache is that of glibc's `dl-cache.h`. Entries for one processor's extras (`glibc-hwcaps`) are passed over:
the same library is always there without them, too.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Iterator
from functools import lru_cache

from envspec.host.machine import Host

CACHE = "/etc/ld.so.cache"
_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_HEADER = struct.Struct("<20sIIBxxxI12x")
_ENTRY = struct.Struct("<iIIIQ")
_OLD_HEADER, _OLD_ENTRY = 16, 12
_MOST_ENTRIES = 1 << 17
_LONGEST_NAME = 4096
# The flags of an entry: an ELF library of glibc 2, and for which machine.
_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03, "riscv64": 0x1003}


def system_directories(machine: str) -> tuple[str, ...]:
    """Return the directories that the loader looks into last, on the distributions that wheels are made for."""
    if machine not in _FLAGS:
        return ()
    multiarch = f"{machine}-linux-gnu"
    return (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def parse_cache(data: bytes, machine: str) -> dict[str, str]:
    """Return sonames and their files in the content of an ld.so.cache, for one machine; nothing if it is not such a file."""
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
        flags, key, value, _, extras = _ENTRY.unpack_from(data, at)
        if flags == _FLAGS.get(machine) and not extras:
            soname, path = _string(data, start + key), _string(data, start + value)
            if soname and path:
                found.setdefault(soname, path)
    return found


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _LONGEST_NAME)
    return os.fsdecode(data[at:end]) if end > at else ""


def read_cache(host: Host, machine: str) -> dict[str, str]:
    """Return sonames and their files in the cache of a host; empty where there is none, or one of an unknown form."""
    return parse_cache(host.data(CACHE) or b"", machine)


@lru_cache(maxsize=4)
def own_cache(machine: str) -> dict[str, str]:
    """Return the same of the machine that envspec runs on, read once."""
    return read_cache(Host(), machine)


def candidates(host: Host, soname: str) -> Iterator[tuple[str, str]]:
    """Yield every file of that soname the loader knows, the one it takes first; each with the reason it is looked at."""
    machine = platform.machine()
    for element in host.elements("LD_LIBRARY_PATH"):
        path = f"{element.rstrip('/')}/{soname}"
        if element.startswith("/") and host.exists(path):
            yield path, "LD_LIBRARY_PATH"
    in_cache = read_cache(host, machine).get(soname)
    if in_cache and host.exists(in_cache):
        yield in_cache, "ldconfig's cache"
    for directory in system_directories(machine):
        path = f"{directory}/{soname}"
        if path != in_cache and host.exists(path):
            yield path, "the system's directories"


def find(host: Host, soname: str) -> tuple[str, str] | None:
    """Return the file that is taken, and why, or None if the loader would not find it."""
    return next(candidates(host, soname), None)
