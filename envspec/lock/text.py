"""The lock's text: rendering and parsing. What is not a requirement stands in comments, so that pip and uv read it too.

    torch==2.11.0 \\
        --hash=sha256:4cf8... \\
        --hash=sha256:1b32...
        # torch-2.11.0-cp310-cp310-manylinux_2_28_aarch64.whl 419723025 2026-03-23T18:11:43Z
        # torch-2.11.0-cp310-cp310-manylinux_2_28_x86_64.whl 530589207 2026-03-23T18:11:23Z
        # via profile, sglang

The n-th file belongs to the n-th hash. A lock is read as untrusted input: its size is bounded and every line must be
one of the forms written here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envspec.data.shipped import is_installed
from envspec.fs import write_synced
from envspec.lock.model import Lock, LockedFile, LockedPackage, OverrideRecord
from envspec.report.errors import ExternalError, UsageError
from envspec.report.os_errors import DISK_FULL, explain_os_error

MAX_BYTES = 16 << 20
VERSION = "1"

_HEADER = (
    "Made by envspec; changes by hand are lost. Make it again with: envspec lock PROFILE\n"
    "pip and uv install it too: pip install --no-deps --require-hashes --only-binary :all: -r FILE"
)
_REQUIREMENT = re.compile(r"([a-z0-9][a-z0-9-]*)==([^\s;\\]+)(?: ; ([^\\]+?))? \\")
_HASH = re.compile(r"    --hash=sha256:([0-9a-f]{64})( \\)?")
_FILE = re.compile(r"    # ([A-Za-z0-9._+!-]+\.(?:whl|tar\.gz|zip)) (\d{1,15})(?: (\S{1,40}))?")
_VIA = re.compile(r"    # via (.+)")
_META = re.compile(r"# ([a-z-]+): (.*)")
_OVERRIDE = re.compile(r"([a-z0-9][a-z0-9-]*)==(\S+)")


def render_lock(lock: Lock) -> str:
    """Return the text of a lock. Equal locks give equal bytes."""
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    yield f"# envspec-lock: {VERSION}"
    for line in _HEADER.splitlines():
        yield f"#   {line}"
    yield f"# profile: {lock.profile_name}"
    yield f"# profile-digest: {lock.profile_digest}"
    yield f"# python: {lock.python}"
    yield f"# machines: {' '.join(lock.machines)}"
    if lock.exclude_newer:
        yield f"# exclude-newer: {lock.exclude_newer}"
    for override in lock.overrides:
        yield f"# override: {override.name}=={override.version}"
        yield f"#   why: {override.reason}"
        for path in override.dependency_paths:
            yield f"#   asked otherwise: {path}"
    for package in lock.packages:
        marker = f" ; {package.marker}" if package.marker else ""
        yield f"{package.pin}{marker} \\"
        for position, file in enumerate(package.files):
            last = position == len(package.files) - 1
            yield f"    --hash=sha256:{file.sha256}" + ("" if last else " \\")
        for file in package.files:
            yield f"    # {file.filename} {file.size} {file.uploaded}".rstrip()
        if package.via:
            yield f"    # via {', '.join(package.via)}"


def read_lock(path: Path) -> Lock | None:
    """Return the lock at `path`, None if there is none. Raises UsageError `lock-damaged`, ExternalError `lock-unreadable`."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExternalError(
            "lock-unreadable", f"cannot read {path}: {error.strerror}", where=str(path)
        ) from None
    if len(raw) > MAX_BYTES:
        raise UsageError("lock-damaged", f"{path} is larger than {MAX_BYTES >> 20} MiB", where=str(path))
    try:
        return parse_lock(raw.decode("utf-8"))
    except (UnicodeDecodeError, LockSyntaxError) as error:
        raise UsageError(
            "lock-damaged",
            f"{path} is not a lock that envspec wrote",
            where=f"{path}, line {error.line}" if isinstance(error, LockSyntaxError) else str(path),
            why=str(error) if isinstance(error, LockSyntaxError) else "it is not UTF-8",
            fix="restore it from version control, or delete it and run: envspec lock "
            + shlex.quote(str(path.with_suffix(".toml"))),
        ) from None


class LockSyntaxError(ValueError):
    """Describes a line that no lock has. `line` counts from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def parse_lock(text: str) -> Lock:
    """Parse a lock's text. Raises LockSyntaxError."""
    parser = _Parser(text.split("\n"))
    return parser.lock()


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def fail(self, problem: str) -> LockSyntaxError:
        return LockSyntaxError(self.at + 1, problem)

    def peek(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def lock(self) -> Lock:
        if self.peek() != f"# envspec-lock: {VERSION}":
            raise self.fail(f"it must begin with '# envspec-lock: {VERSION}'")
        meta: dict[str, str] = {}
        overrides: list[OverrideRecord] = []
        while self.peek().startswith("#"):
            match = _META.fullmatch(self.peek())
            self.at += 1
            if match and match[1] == "override":
                self.at -= 1
                overrides.append(self._override(match[2]))
            elif match:
                meta[match[1]] = match[2]
        packages = []
        while self.peek():
            packages.append(self._package())
        if any(self.lines[self.at :]):
            raise self.fail("an empty line in the middle")
        for key in ("profile", "profile-digest", "python", "machines"):
            if key not in meta:
                raise self.fail(f"'# {key}:' is missing")
        return Lock(
            profile_name=meta["profile"],
            profile_digest=meta["profile-digest"],
            python=meta["python"],
            machines=tuple(meta["machines"].split()),
            exclude_newer=meta.get("exclude-newer", ""),
            overrides=tuple(overrides),
            packages=tuple(packages),
        )

    def _override(self, text: str) -> OverrideRecord:
        match = _OVERRIDE.fullmatch(text)
        if not match:
            raise self.fail("an override is written name==version")
        self.at += 1
        reason, paths = "", []
        while self.peek().startswith("#   "):
            key, _, value = self.peek()[4:].partition(": ")
            if key == "why":
                reason = value
            elif key == "asked otherwise":
                paths.append(value)
            self.at += 1
        return OverrideRecord(name=match[1], version=match[2], reason=reason, dependency_paths=tuple(paths))

    def _package(self) -> LockedPackage:
        match = _REQUIREMENT.fullmatch(self.peek())
        if not match:
            raise self.fail("expected a pinned requirement followed by its hashes")
        name, version, marker = match[1], match[2], match[3] or ""
        try:
            Version(version)
            if marker:
                Marker(marker)
        except (InvalidVersion, InvalidMarker) as error:
            raise self.fail(str(error).splitlines()[0]) from None
        if canonicalize_name(name) != name:
            raise self.fail(f"{name} is not a normalized name")
        self.at += 1
        hashes = self._hashes()
        files, via = self._comments(hashes)
        return LockedPackage(name=name, version=version, marker=marker, files=files, via=via)

    def _hashes(self) -> list[str]:
        hashes: list[str] = []
        more = True
        while more:
            match = _HASH.fullmatch(self.peek())
            if not match:
                raise self.fail("expected --hash=sha256: with 64 hexadecimal digits")
            hashes.append(match[1])
            more = bool(match[2])
            self.at += 1
        return hashes

    def _comments(self, hashes: list[str]) -> tuple[tuple[LockedFile, ...], tuple[str, ...]]:
        files: list[LockedFile] = []
        via: tuple[str, ...] = ()
        while self.peek().startswith("    #"):
            file, asked = _FILE.fullmatch(self.peek()), _VIA.fullmatch(self.peek())
            if file and len(files) < len(hashes):
                files.append(LockedFile(file[1], hashes[len(files)], int(file[2]), file[3] or ""))
            elif asked:
                via = tuple(asked[1].split(", "))
            else:
                raise self.fail("expected a file with its size, or '# via'")
            self.at += 1
        if len(files) != len(hashes):
            raise self.fail(f"{len(hashes)} hashes but {len(files)} files")
        return tuple(files), via


def write_lock(path: Path, lock: Lock) -> None:
    """Write the lock's text in one step. Raises ExternalError `lock-unwritable`."""
    if is_installed(path):
        raise UsageError(
            "profile-shipped",
            f"{path.name} belongs to the installed envspec and is not changed",
            where=str(path),
            fix=f"copy the profile to a directory of your own: cp {shlex.quote(str(path.with_suffix('.toml')))} .",
        )
    try:
        write_synced(path, render_lock(lock).encode("utf-8"))
    except OSError as error:
        if error.errno in DISK_FULL:
            raise explain_os_error(error) from None
        raise ExternalError(
            "lock-unwritable",
            f"cannot write {path}: {error.strerror}",
            where=str(path),
            fix="copy the profile to a directory of your own and build from there",
        ) from None
