"""Does what will be installed fit on the disk? Asked before the installation, answered by what is known for sure.

Files reach the venv as hard links to uv's cache where both lie in one file system, and as copies where they do not, or where
UV_LINK_MODE asks for copies. So the venv needs the unpacked size of every wheel or next to nothing, and the cache the unpacked
size of the wheels that are not in it yet. Unpacked sizes come from what the check has read of the wheels, exactly; of a wheel
that it has not read, the lock's compressed size is the least it can be, and 2.2 times that is usual (9.0 GB of 4.1 GB,
measured on the first profile).

A build is refused only if it cannot fit even by the least figures; if it may not fit by the usual ones, it is warned. Which
wheels uv's cache holds is known only of a cache that holds none; of any other, none counts as missing in the least figure
and all in the usual one. Quotas are not known here, and who else writes meanwhile is not, either.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from envspec.lock import LockedFile, LockedPackage, read_lock
from envspec.lock.selection import select
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, ExternalError
from envspec.uv.run import Uv
from envspec.wheels.cache import cache_dir, read_bytes

USUAL_RATIO = 2.2
_OVERHEAD = 1.02
"""Directory entries, and the rest of the last block of each file."""
_FIRST_PROFILE = 9_000_000_000
"""What the environment of the first shipped profile, rtx-pro-6000, takes: 190 packages, 71,036 files, measured on 2026-11-30."""


class Size(msgspec.Struct, frozen=True):
    """Says how many bytes a wheel has when it is unpacked: at least, and usually."""

    least: int
    usual: int


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Says what a directory's file system has to take."""

    place: Path
    free: int
    least: int
    usual: int


def require_disk_space(
    files: Iterable[tuple[LockedPackage, LockedFile]],
    output: Path,
    uv: Uv,
    warn: Callable[[str], None],
) -> None:
    """Raise ExternalError `disk-too-small` where the files surely do not fit; tell `warn` where they may not."""
    sizes = [size_of(file) for _, file in files]
    cache = uv.cache_directory()
    links = uv.env.get("UV_LINK_MODE") not in ("copy", "symlink")
    missing = len(sizes) if is_empty(cache) else 0
    places = existing_parent(output), existing_parent(cache)
    for least, usual in zip(
        _needs(sizes, *places, links, missing), _needs(sizes, *places, links, len(sizes)), strict=True
    ):
        if least.least > least.free:
            raise ExternalError(
                "disk-too-small",
                f"the environment needs {_gigabytes(least.least)} more in {least.place}, "
                f"where {_gigabytes(least.free)} are free",
                where=str(least.place),
                fix="free space (envspec gc, uv cache prune), or name another place: --out, UV_CACHE_DIR",
            )
        if usual.usual > usual.free:
            warn(
                f"warning: the environment may need {_gigabytes(usual.usual)} more in {usual.place}, "
                f"where {_gigabytes(usual.free)} are free"
            )


def size_of_environment(profile: Profile | None) -> int:
    """Return how many bytes the environment of a profile usually takes on this machine, by its lock.

    Without a profile, or a lock that can be read, it is the size of the first shipped profile's.
    """
    try:
        lock = read_lock(profile.lock_path) if profile is not None else None
    except EnvspecError:
        lock = None
    if profile is None or lock is None:
        return _FIRST_PROFILE
    chosen = select(lock, Target(profile.python.prefer, platform.machine())).values()
    return sum(size_of(one.file).usual for one in chosen if one.file is not None)


def size_of(file: LockedFile) -> Size:
    """Return the unpacked size of a wheel, from what the check has read of it, else from its compressed size."""
    for kept in cache_dir().glob(f"look-*/{file.sha256}*.msgpack"):
        try:
            members = msgspec.msgpack.decode(read_bytes(kept), type=_Members).members
        except (OSError, msgspec.DecodeError):
            continue
        exact = sum(size for _, _, size in members)
        if exact:  # of some wheels only the ends of their list of files were read
            return Size(exact, round(exact * _OVERHEAD))
    return Size(file.size, round(file.size * USUAL_RATIO))


def _needs(sizes: list[Size], output: Path, cache: Path, links: bool, uncached: int) -> tuple[Need, ...]:
    """Return what each file system has to take if so many of the wheels are downloaded: the smallest at least, the largest usually.

    `links` is whether uv links where it can.
    """
    linked = links and same_file_system(cache, output)
    least = sum(sorted(size.least for size in sizes)[:uncached])
    usual = sum(sorted((size.usual for size in sizes), reverse=True)[:uncached])
    copied = Size(0, 0) if linked else Size(sum(s.least for s in sizes), sum(s.usual for s in sizes))
    if same_file_system(cache, output):
        return (
            Need(place=output, free=_free(output), least=least + copied.least, usual=usual + copied.usual),
        )
    return (
        Need(place=output, free=_free(output), least=copied.least, usual=copied.usual),
        Need(place=cache, free=_free(cache), least=least, usual=usual),
    )


def is_empty(cache: Path) -> bool:
    """Tell whether uv's cache holds no unpacked wheel."""
    return not any(cache.glob("archive-v*/*"))


def existing_parent(path: Path) -> Path:
    """Return the path, or the nearest directory above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def same_file_system(a: Path, b: Path) -> bool:
    """Tell whether a hard link can lead from one to the other, as far as device numbers tell."""
    return a.stat().st_dev == b.stat().st_dev


def _free(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1) / 1e6:.1f} MB"


class _Members(msgspec.Struct):
    """What is asked of a look that the check has kept."""

    members: tuple[tuple[str, int, int], ...]
