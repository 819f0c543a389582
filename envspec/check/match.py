"""Which released versions of an extension fit which torch, from symbols alone: metadata may say nothing, or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from packaging.version import Version

from envspec.lock.selection import best_wheel, ranks
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, UsageError
from envspec.torch_abi import exports as torch_exports
from envspec.torch_abi.variants import broken_members
from envspec.uv.run import Uv
from envspec.wheels.access import IndexAccess, access_of
from envspec.wheels.contents import contents_of
from envspec.wheels.file import ResolvedFile
from envspec.wheels.index import releases
from envspec.wheels.metadata import fetch_metadata

_WORKERS = 8


class MatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one release: the torch releases it fits, what its metadata declares, and a reason where nothing is known."""

    version: str
    uploaded: str
    fits: tuple[str, ...]
    declares: str
    stable_abi: bool = False
    imports_torch: bool = True
    problem: str = ""


class MatchTable(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the answer of `envspec match`; `version` is the version of the JSON form."""

    version: int = 1
    package: str
    machine: str
    python: str
    known_torch: tuple[str, ...]
    rows: tuple[MatchRow, ...]


def match(
    package: str,
    target: Target,
    uv: Uv,
    python: Path,
    most: int,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    profile: Profile | None = None,
) -> MatchTable:
    """Return the newest `most` releases of a package that have a wheel for the target, each with the torch releases it fits.

    They come from the index that `profile` takes the package from. Raises UsageError `no-wheel`, and what asking for the
    releases raises.
    """
    on_progress(f"asking the index for the releases of {package}")
    chosen = list(_wheels(releases(package, uv, python, profile), target))[:most]
    if not chosen:
        raise UsageError(
            "no-wheel",
            f"{package} has no wheel for CPython {target.minor} on {target.machine}",
            where="--python",
        )
    on_progress(f"reading {len(chosen)} wheels")
    with ThreadPoolExecutor(_WORKERS) as pool:
        access = access_of(profile, uv)
        rows = pool.map(
            lambda item: _row(package, item[0], item[1], target.machine, access, offline=uv.offline), chosen
        )
        return MatchTable(
            package=package,
            machine=target.machine,
            python=target.minor,
            known_torch=torch_exports.load().releases(target.machine),
            rows=tuple(rows),
        )


def fitting_versions(table: MatchTable, torch: str) -> tuple[str, ...]:
    """Return the versions that fit one torch release, newest first, pre-releases last."""
    fits = [row.version for row in table.rows if torch in row.fits]
    return tuple(sorted(fits, key=lambda v: Version(v).is_prerelease))


def _wheels(
    found: dict[Version, list[ResolvedFile]], target: Target
) -> Iterator[tuple[Version, ResolvedFile]]:
    places = ranks(target)
    for version, files in found.items():
        best = best_wheel((file.filename for file in files), places)
        if best is not None:
            yield version, next(file for file in files if file.filename == best)


def _row(
    package: str, version: Version, file: ResolvedFile, machine: str, access: IndexAccess, *, offline: bool
) -> MatchRow:
    table = torch_exports.load()
    try:
        contents = contents_of(package, file, access, thorough=True, offline=offline)
        metadata = fetch_metadata([file], access, offline=offline).get(file.sha256)
    except EnvspecError as error:
        return MatchRow(
            version=str(version), uploaded=file.uploaded[:10], fits=(), declares="", problem=error.what
        )
    declared = (
        [str(r.specifier) or "any" for r in metadata.requirements() if r.name == "torch"] if metadata else []
    )
    names = {
        lib.path: [n.encode("latin-1") for n in lib.torch_imports]
        for lib in contents.libraries
        if not lib.problem
    }
    unread = [lib.path for lib in contents.libraries if lib.problem]
    imports = any(names.values())

    def breaks(release: str) -> bool:
        lacking = {path for path, wanted in names.items() if table.missing(wanted, release, machine)}
        return bool(broken_members(names, lacking.__contains__, release))

    fits = tuple(r for r in table.releases(machine) if imports and not breaks(r))
    return MatchRow(
        version=str(version),
        uploaded=file.uploaded[:10],
        fits=fits,
        declares=", ".join(declared),
        stable_abi=imports and all(table.is_stable_only(n) for n in names.values()),
        imports_torch=imports,
        problem=f"{unread[0]} could not be read" if unread else "",
    )
