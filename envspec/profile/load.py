"""From files to one TOML document: bounded reading, syntax errors with line and column, and what a profile extends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
import tomlkit.exceptions

from envspec.data.shipped import shipped_profiles
from envspec.profile.strict import nearest, show
from envspec.report.errors import ExternalError, UsageError

MAX_BYTES = 1 << 20
"""No honest profile is larger; a larger file is a mistake (or an attack) and is not read."""

_MAX_EXTENDS = 8


OLD_KEYS = {"install.winners": "install.precedence"}
"""Names of keys in older releases, which are still read, and their names of today."""


class Loaded(msgspec.Struct, frozen=True):
    """Describes a profile merged over what it extends, the files it was read from, and the old names of keys that they hold."""

    values: dict[str, Any]
    sources: tuple[Path, ...]
    old_keys: tuple[tuple[str, str], ...]


def load_with_bases(path: Path, text: str | None) -> Loaded:
    """Return the profile merged over what it extends: tables merge key by key, everything else replaces."""
    old_keys: list[tuple[str, str]] = []
    chain: list[tuple[Path, dict[str, Any]]] = []
    current: Path | None = path
    while current is not None:
        resolved = current.resolve()
        if any(resolved == seen.resolve() for seen, _ in chain):
            raise UsageError("profile-extends", f"{path.name} extends itself", where=str(current))
        if len(chain) == _MAX_EXTENDS:
            raise UsageError(
                "profile-extends", f"more than {_MAX_EXTENDS} profiles extend each other", where=str(path)
            )
        if text is not None and not chain:
            values = _parse(text, current, str(current))
        else:
            values = _load(current, extended_by=chain[-1][0] if chain else None)
        old_keys += _rename_old_keys(values, current)
        chain.append((current, values))
        base = values.pop("extends", None)
        if base is not None and not isinstance(base, str):
            raise UsageError(
                "profile-wrong-type", f"extends must be a string, not {show(base)}", where=str(current)
            )
        current = _base(current, base) if base is not None else None
    merged: dict[str, Any] = {}
    for _, values in reversed(chain):
        merged = _merge(merged, values)
    return Loaded(merged, tuple(p for p, _ in chain), tuple(dict.fromkeys(old_keys)))


def _rename_old_keys(values: dict[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    """Give keys their names of today, in one file: which of two files wins is decided by their order, not by the spelling."""
    for old, new in OLD_KEYS.items():
        section, _, key = old.partition(".")
        table = values.get(section)
        if not isinstance(table, dict) or key not in table:
            continue
        today = new.partition(".")[2]
        if today in table:
            raise UsageError(
                "profile-value",
                f"{old} is the old name of {new}, and both are there",
                where=str(path),
                fix=f"keep {new}",
            )
        table[today] = table.pop(key)
        yield old, new


def _base(profile: Path, name: str) -> Path:
    """What a profile extends: a file beside it, or else a shipped profile by its name."""
    beside = profile.parent / name
    if not beside.exists():
        for shipped in shipped_profiles():
            if name in (shipped.stem, shipped.name):
                return shipped
    return beside


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _load(path: Path, extended_by: Path | None) -> dict[str, Any]:
    where = f"{path}, which {extended_by} extends" if extended_by else str(path)
    if not path.name.isprintable():
        # Its name goes into the lock, into prompts and into messages, all of which are lines of text.
        raise UsageError(
            "profile-name",
            f"a profile cannot be named {show(path.name)}",
            where="PROFILE",
            why="the name holds a control character or a letter that cannot be printed",
            fix="rename the file",
        )
    try:
        if path.is_dir():
            raise UsageError(
                "profile-missing",
                f"{path} is a directory, not a profile",
                where=where,
                fix="name a .toml file",
            )
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(
            "profile-missing", f"there is no profile {path}", where=where, fix=_other_profiles(path)
        ) from None
    except OSError as error:
        raise ExternalError(
            "profile-unreadable", f"cannot read {path}: {error.strerror}", where=where
        ) from None
    if len(raw) > MAX_BYTES:
        raise UsageError("profile-too-large", f"{path} is larger than {MAX_BYTES >> 20} MiB", where=where)
    try:
        return _parse(raw.decode("utf-8"), path, where)
    except UnicodeDecodeError as error:
        raise UsageError(
            "profile-syntax", f"{path} is not UTF-8 (byte {error.start})", where=where, fix="save it as UTF-8"
        ) from None


def _parse(text: str, path: Path, where: str) -> dict[str, Any]:
    try:
        return tomlkit.parse(text).unwrap()
    except tomlkit.exceptions.ParseError as error:
        reason = re.sub(r" at line \d+ col \d+$", "", str(error))
        if "use \\u000a instead" in reason:
            reason = "a string is not closed before the end of its line"
        raise UsageError(
            "profile-syntax",
            f"{path} is not valid TOML: {reason}",
            where=f"{where}, line {error.line}, column {error.col + 1}",
            why=_quote_line(text, error.line, error.col),
        ) from None
    except (tomlkit.exceptions.TOMLKitError, ValueError, RecursionError) as error:
        raise UsageError(
            "profile-syntax", f"{path} is not valid TOML: {show(str(error))}", where=where
        ) from None


def _quote_line(text: str, line: int, column: int) -> str:
    lines = text.splitlines() or [""]
    quoted = lines[min(line, len(lines)) - 1][:200]
    if not quoted.isprintable():
        return ""
    return f"{quoted}\n{' ' * column}^"


def _other_profiles(path: Path) -> str:
    """Name the profile that was probably meant."""
    try:
        found = sorted(p.name for p in path.parent.glob("*.toml"))[:100]
    except (OSError, ValueError):
        found = []
    if len(path.parts) == 1:
        found += [shipped.stem for shipped in shipped_profiles()]
    if not found:
        return "give the path of a .toml file, or the name of a shipped profile (envspec profiles)"
    return nearest(path.name, found)
