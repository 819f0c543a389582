"""One owner per file: every RECORD against the disk, and the disk against every RECORD.

Sizes are compared always, contents when asked: hashing 9 GB takes as long as reading them. Bytecode caches belong to nobody
and are passed over. Where packages own one path with different content, the file has to be the declared winner's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from envspec.activation.startup_pth import pth_files
from envspec.audit.environment import Environment
from envspec.fs import file_sha256
from envspec.report.findings import Finding, error, warning
from envspec.venv.record import InstalledPackage, RecordRow, installed_packages

_SHOWN = 6
_BYTECODE = re.compile(r"(?:\A|/)__pycache__/[^/]*\.pyc\Z")
# Written by the venv itself and by installers, owned by no RECORD.
_OF_THE_VENV = re.compile(
    r"_virtualenv\.(?:py|pth)|distutils-precedence\.pth|[^/]+\.dist-info/(?:RECORD|INSTALLER|REQUESTED|direct_url\.json"
    r"|uv_cache\.json|uv_build\.json)"
)


@dataclass(frozen=True)
class Owned:
    """A path with the package whose content it should have, and what that is."""

    package: str
    row: RecordRow
    contested: bool


def ownership_findings(
    environment: Environment,
    files: Iterable[str],
    *,
    hashes: bool,
    packages: tuple[InstalledPackage, ...] | None = None,
) -> Iterator[Finding]:
    """Everything that is not as the RECORDs say. `files` are all files of the venv, relative to it.

    `packages` are its RECORDs, if they were read already.
    """
    if packages is None:
        packages = installed_packages(environment.site)
    yield from _packages(environment, packages)
    owned = owners_of_paths(packages, dict(environment.winners), frozenset(dict(environment.packages or ())))
    yield from _contents(environment, owned, hashes=hashes)
    yield from _foreign(environment, owned, files)


def owners_of_paths(
    packages: Iterable[InstalledPackage], winners: Mapping[str, str], locked: frozenset[str] = frozenset()
) -> dict[str, Owned]:
    """The one owner of each path: where packages differ the declared winner, else one that is locked."""
    owned: dict[str, Owned] = {}
    for package in sorted(packages, key=lambda package: package.name in locked):
        title = f"{package.name} {package.version}"
        for row in package.rows:
            before = owned.get(row.path)
            if before is None:
                owned[row.path] = Owned(title, row, False)
            elif before.row.sha256 != row.sha256:
                declared = winners.get(row.path)
                wins = declared == package.name if declared else package.name in locked
                owned[row.path] = Owned(title if wins else before.package, row if wins else before.row, True)
    return owned


def _packages(environment: Environment, packages: Iterable[InstalledPackage]) -> Iterator[Finding]:
    """Is installed what was locked, and nothing else?"""
    if environment.packages is None:
        return
    locked = dict(environment.packages)
    installed: dict[str, list[str]] = {}
    for package in packages:
        installed.setdefault(package.name, []).append(package.version)
    for name, version in sorted(locked.items()):
        found = installed.get(name, [])
        if not found:
            yield error(
                "package-missing", name, f"{name} {version} is locked and not installed", fix="build again"
            )
        elif found != [_plain(version)] and found != [version]:
            yield error(
                "package-foreign",
                name,
                f"{name} {' and '.join(found)} is installed, {version} is locked",
                fix="build again; change versions in the profile, not in the environment",
            )
    for name, versions in sorted(installed.items()):
        if name not in locked:
            yield error(
                "package-foreign",
                name,
                f"{name} {' and '.join(versions)} is installed and not locked",
                fix=f"add {name} to the profile, or build again without it",
            )


def _plain(version: str) -> str:
    """A version as a dist-info directory spells it."""
    return version.replace("-", "_")


def _contents(environment: Environment, owned: Mapping[str, Owned], *, hashes: bool) -> Iterator[Finding]:
    missing: dict[str, list[str]] = {}
    changed: dict[str, list[str]] = {}
    site = str(environment.site)
    same_size = []
    for path, owner in owned.items():
        if not owner.row.sha256 and not owner.row.size:
            # RECORD itself, and bytecode, have neither.
            continue
        try:
            status = os.lstat(f"{site}/{path}")
        except OSError:
            missing.setdefault(owner.package, []).append(path)
            continue
        if owner.row.sha256 and status.st_size != owner.row.size:
            changed.setdefault(owner.package, []).append(
                f"{path}: {status.st_size} bytes, RECORD says {owner.row.size}"
            )
        elif owner.row.sha256 and (hashes or owner.contested):
            same_size.append((path, owner))
    for path, owner in _differing(site, same_size):
        changed.setdefault(owner.package, []).append(f"{path}: another content of the same size")
    for package, paths in sorted(missing.items()):
        yield error(
            "file-missing",
            package.partition(" ")[0],
            f"{package}: {_count(len(paths), 'file')} of it {'is' if len(paths) == 1 else 'are'} not there",
            evidence=_some(paths),
            fix="build again",
        )
    for package, paths in sorted(changed.items()):
        yield error(
            "file-changed",
            package.partition(" ")[0],
            f"{package}: {_count(len(paths), 'file')} of it {'is' if len(paths) == 1 else 'are'} not what was installed",
            evidence=_some(paths),
            fix="build again; a change that you need belongs into a package of its own",
        )


def _differing(site: str, files: list[tuple[str, Owned]]) -> Iterator[tuple[str, Owned]]:
    """Those whose content is not that of their RECORD. Hashing lets other threads run."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for (path, owner), digest in zip(files, pool.map(lambda f: _digest(site, f[0]), files), strict=True):
            if digest != owner.row.sha256:
                yield path, owner


def _digest(site: str, path: str) -> str:
    try:
        return file_sha256(Path(site) / path)
    except OSError:
        return ""


def _foreign(environment: Environment, owned: Mapping[str, Owned], files: Iterable[str]) -> Iterator[Finding]:
    """Files in site-packages that no RECORD names."""
    prefix = environment.site_packages + "/"
    strangers: dict[str, list[str]] = {}
    for name in files:
        if not name.startswith(prefix):
            continue
        path = name[len(prefix) :]
        if path in owned or _BYTECODE.search(path) or _OF_THE_VENV.fullmatch(path) or path in pth_files():
            continue
        strangers.setdefault(path.split("/", 1)[0], []).append(path)
    for top, paths in sorted(strangers.items()):
        yield warning(
            "file-foreign",
            top,
            f"{_count(len(paths), 'file')} below {top} in site-packages {'is' if len(paths) == 1 else 'are'} of no package",
            evidence=_some(paths),
            fix="remove what you did not put there, or build again",
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _some(lines: list[str]) -> list[str]:
    ordered = sorted(lines)
    return ordered if len(ordered) <= _SHOWN else [*ordered[:_SHOWN], f"and {len(ordered) - _SHOWN} more"]
