"""The contents of wheels without downloading them: which files they hold, what their libraries ask of torch and nvJitLink.

Kept by the wheel's hash, since a wheel never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import msgspec
from packaging.utils import canonicalize_name

from envspec.elf import Elf, ElfError, ElfIncomplete
from envspec.report.errors import EnvspecError, error_words
from envspec.report.rules import Missing
from envspec.torch_abi.names import torch_names
from envspec.wheels.access import IndexAccess
from envspec.wheels.cache import NotKept, entry, keep_bytes, read_bytes
from envspec.wheels.file import (
    Library,
    Member,
    ResolvedFile,
    SetContents,
    WheelContents,
    WheelMember,
    is_library,
    local_path,
)
from envspec.wheels.local import LocalWheel
from envspec.wheels.metadata import WheelMetadata

_VERSION = "look-6"
_WORKERS = 24
# Kernel wheels have their tables in the first 0.2 MB (measured); what has none in twice that has them at the end.
_PREFIX_LIMIT = 400 << 10
_SAMPLE = 3
_SAMPLE_PREFIX_LIMIT = 160 << 10


def read_all_contents(
    files: Mapping[str, ResolvedFile],
    metadata: Mapping[str, WheelMetadata],
    access: IndexAccess,
    *,
    offline: bool,
) -> SetContents | Missing:
    """Read every wheel, in parallel; one that cannot be read makes the whole answer unknown, with its name.

    Raises NotKept for a file of unknown address.
    """
    extensions = _torch_extensions(metadata)
    with ThreadPoolExecutor(_WORKERS) as pool:
        work = [(name, file, name in extensions) for name, file in sorted(files.items())]
        try:
            read = list(pool.map(partial(_contents, access=access, offline=offline), work))
            shared = _shared_directories(read)
            for position, (name, file, thorough) in enumerate(work):
                if read[position].sole_directory in shared:
                    read[position] = contents_of(
                        name, file, access, thorough=thorough, offline=offline, whole=True
                    )
        except EnvspecError as error:
            pool.shutdown(cancel_futures=True)
            return Missing(error_words(error))
    return SetContents({name: one for (name, _, _), one in zip(work, read, strict=True)})


def _shared_directories(wheels: Iterable[WheelContents]) -> set[str]:
    """Return directories of wheels whose list of files was not read, in which another package has files too."""
    owners: dict[str, int] = {}
    for wheel in wheels:
        tops = {member.path.split("/", 1)[0] for member in wheel.members} | {wheel.sole_directory}
        for top in tops - {""}:
            owners[top] = owners.get(top, 0) + 1
    return {top for top, count in owners.items() if count > 1}


def _torch_extensions(metadata: Mapping[str, WheelMetadata]) -> frozenset[str]:
    """Packages that say they need torch. Others may be built against it all the same and are sampled."""
    return frozenset(
        name
        for name, one in metadata.items()
        if any(canonicalize_name(r.name) == "torch" for r in one.requirements())
    )


class Wheel(Protocol):
    """Describes a wheel that can be read, on a disk or on a server. LocalWheel and RemoteWheel are the two kinds."""

    @property
    def members(self) -> tuple[Member, ...]:
        """Return its files."""

    def elf(self, name: str, at_most: int) -> Elf:
        """Return a library, from at most so many bytes of the compressed member."""

    def ends_of_directory(self) -> tuple[str, ...] | None:
        """Return the names at both ends of a long list of files; None if the list is better read as a whole."""


def _contents(work: tuple[str, ResolvedFile, bool], *, access: IndexAccess, offline: bool) -> WheelContents:
    name, file, thorough = work
    return contents_of(name, file, access, thorough=thorough, offline=offline)


def contents_of(
    name: str,
    file: ResolvedFile,
    access: IndexAccess,
    *,
    thorough: bool,
    offline: bool,
    whole: bool = False,
) -> WheelContents:
    """Return the contents of one wheel, from the cache or by ranged reads. Raises what reading a wheel raises.

    Of a pure wheel with a long list of files only the ends of the list are read, unless the `whole` is asked for.
    """
    kind = ("-full" if thorough else "") + ("-whole" if whole else "")
    kept = entry(_VERSION, file.sha256, f"{kind}.msgpack", access.scope)
    try:
        return msgspec.msgpack.decode(read_bytes(kept), type=WheelContents)
    except (OSError, msgspec.DecodeError):
        pass
    if not file.url:
        raise NotKept(file.filename)
    local = local_path(file.url)
    if local is None and offline:
        raise EnvspecError(
            "offline", f"{file.filename} was not read before, and the network was not to be used"
        )
    wheel = _remote(file.url, access) if local is None else LocalWheel(local)
    outside = None if whole or not file.filename.endswith("-none-any.whl") else contents_from_outside(wheel)
    found = outside or read_contents(wheel, name, thorough)
    keep_bytes(kept, msgspec.msgpack.encode(found))
    return found


def kept_members(sha256: str, access: IndexAccess) -> tuple[WheelMember, ...]:
    """Return a wheel's own list of its files, if it was read before; empty where it was not, or not as a whole."""
    for kind in ("-full-whole", "-whole", "-full", ""):
        try:
            data = read_bytes(entry(_VERSION, sha256, f"{kind}.msgpack", access.scope))
            members = msgspec.msgpack.decode(data, type=WheelContents).members
        except (OSError, msgspec.DecodeError):
            continue
        if members:
            return members
    return ()


def _remote(url: str, access: IndexAccess) -> Wheel:
    from envspec.wheels.ranged import shared_session
    from envspec.wheels.remote import RemoteWheel  # requests takes long to import, and most answers are kept

    return RemoteWheel(url, shared_session(access))


def contents_from_outside(wheel: Wheel) -> WheelContents | None:
    """Return the one directory of a wheel with a long list of files; None if it has a short list or more than one."""
    ends = wheel.ends_of_directory()
    if ends is None:
        return None
    tops = {name.split("/", 1)[0] for name in ends}
    directories = {top for top in tops if not top.endswith(".dist-info")}
    if len(directories) != 1 or any(top.endswith(".data") for top in directories):
        return None
    return WheelContents(members=(), sole_directory=directories.pop())


def read_contents(wheel: Wheel, package: str, thorough: bool) -> WheelContents:
    """Read a wheel's list of files and the symbol tables of its libraries.

    All libraries where `thorough`; else the largest few, and the rest only if one of those asks for torch: torch
    extensions that do not declare torch exist (sglang-kernel up to 0.4.6), packages with 300 libraries do too.
    """
    libraries = [m.name for m in sorted(wheel.members, key=lambda m: -m.size) if may_matter(package, m.name)]
    sampled = not thorough and not package.startswith("nvidia-")
    first = libraries[:_SAMPLE] if sampled else libraries
    limit = _SAMPLE_PREFIX_LIMIT if sampled else _PREFIX_LIMIT
    exported: set[bytes] = set()
    read = [_library(wheel, name, exported, limit) for name in first]
    if sampled and any(one.torch_imports for one in read):
        again = [one.path for one in read if one.problem] + libraries[_SAMPLE:]
        read = [one for one in read if not one.problem]
        read += [_library(wheel, name, exported, _PREFIX_LIMIT) for name in again]
    own = {name.decode("latin-1") for name in exported}
    return WheelContents(
        members=tuple(
            WheelMember(path, m.crc, m.size)
            for m in wheel.members
            if (path := installed_path(m.name)) is not None
        ),
        libraries=tuple(
            msgspec.structs.replace(one, torch_imports=tuple(n for n in one.torch_imports if n not in own))
            for one in read
            if one.torch_imports or one.jitlink_imports or one.jitlink_exports or one.problem
        ),
        unread=len(libraries) - len(read),
    )


def may_matter(package: str, path: str) -> bool:
    """Tell whether a member is a library that a rule asks about. What torch itself exports is shipped as data."""
    if package == "torch" or not is_library(path):
        return False
    return not package.startswith("nvidia-") or _may_jitlink(path)


def _may_jitlink(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith(("libnvJitLink", "libcusparse.", "libcusolver.", "libcublas", "libcufft."))


def _library(wheel: Wheel, path: str, exported: set[bytes], limit: int) -> Library:
    try:
        symbols = wheel.elf(path, limit).symbols
        imports, exports = symbols.imports, symbols.exports
    except ElfIncomplete:
        return Library(path=path, problem="its symbol table stands at the end of the file")
    except ElfError as error:
        return Library(path=path, problem=f"{error.reason} ({error.code})")
    own = torch_names(exports)
    exported |= own
    return Library(
        path=path,
        torch_imports=tuple(sorted(n.decode("latin-1") for n in torch_names(imports))),
        jitlink_imports=_jitlink(imports),
        jitlink_exports=_jitlink(exports),
    )


def _jitlink(names: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(sorted(n.decode("latin-1") for n in names if n.startswith((b"__nvJitLink", b"nvJitLink"))))


def installed_path(member: str) -> str | None:
    """Return where a wheel's member lies in site-packages; None for directories and for files that go elsewhere."""
    if member.endswith("/"):
        return None
    top, _, rest = member.partition("/")
    if top.endswith(".data"):
        scheme, _, inner = rest.partition("/")
        return inner if scheme in ("purelib", "platlib") else None
    return member
