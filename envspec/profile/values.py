"""Values in a profile that need more than a type: versions, packages, sizes, moments."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timezone

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name, is_normalized_name
from packaging.version import InvalidVersion, Version

from envspec.profile.model import PackageRequest
from envspec.profile.strict import Table, nearest, show

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
"""The name of a package, an extra or an index."""

_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(MiB|GiB|MB|GB)")
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "MB": 10**6, "GB": 10**9}


def specifier_set(text: str) -> SpecifierSet:
    """Return a range of versions. Raises ValueError."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from None


def admits(specifiers: SpecifierSet, minor: str) -> bool:
    """Return whether a range admits any patch of a Python minor."""
    # A range such as >=3.10.4 admits the minor 3.10; ask for a late patch as well as for the first.
    return any(specifiers.contains(f"{minor}.{patch}") for patch in (0, 1, 99))


def package_name(table: Table, key: str, name: str) -> str:
    """Return a package's name in normal form. Raises UsageError `profile-value`."""
    if not NAME.fullmatch(name):
        table.fail(key, f"is not a package name: {show(name)}")
    return canonicalize_name(name)


def package_request(table: Table, key: str, value: object, indexes: list[str]) -> PackageRequest:
    """Return what one key of `[packages]` asks for: a version, or a table. Raises UsageError `profile-*`."""
    if not NAME.fullmatch(key):
        table.fail(key, "is not a package name")
    name = canonicalize_name(key)
    if not is_normalized_name(key):
        table.fail(key, "is not spelt as the index spells it", fix=f"did you mean {name!r}?")
    if isinstance(value, str):
        specifier, local = requested_version(table, key, value)
        return PackageRequest(name=name, specifier=specifier, local=local)
    if not isinstance(value, dict):
        table.fail(
            key,
            f"must be a version or a table, not {show(value)}",
            code="profile-wrong-type",
            fix=f'for example: {key} = "1.2.3"',
        )
    inner = Table(table.file, value, table.dotted(key))
    specifier, local = requested_version(inner, "version", inner.get("version", str, "*") or "")
    extras = tuple(sorted(canonicalize_name(extra) for extra in inner.strings("extras") or ()))
    for extra in extras:
        if not NAME.fullmatch(extra):
            inner.fail("extras", f"holds what is not an extra: {show(extra)}")
    index = inner.get("index", str, "") or ""
    if index and index not in indexes:
        inner.fail(
            "index", f"is not one of the profile's indexes: {show(index)}", fix=nearest(index, indexes)
        )
    inner.close()
    return PackageRequest(name=name, specifier=specifier, local=local, extras=extras, index=index)


def size_in_bytes(text: str) -> int | None:
    """Return the bytes of a size such as `4 GiB`; None if it is none."""
    match = _SIZE.fullmatch(text)
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


def requested_version(table: Table, key: str, text: str) -> tuple[str, str]:
    """Return specifier and local label: `==2.11.0` and `cu130` for `2.11.0+cu130`; a range is itself, `*` is empty.

    Raises UsageError `profile-value`.
    """
    if text.strip() == "*":
        return "", ""
    try:
        version = Version(text)
    except InvalidVersion:
        try:
            specifiers = SpecifierSet(text)
        except InvalidSpecifier:
            example = (
                f'did you mean "=={text}"?'
                if text.endswith(".*")
                else 'for example "1.2.3", ">=1.2,<2" or "*"'
            )
            table.fail(key, f"is not a version: {show(text)}", fix=example)
        if not text.strip():
            table.fail(key, "is empty", fix='write "*" for any version')
        if any("+" in s.version for s in specifiers):
            table.fail(
                key,
                f"has a local label in a range: {show(text)}",
                fix='a label goes with an exact pin: "2.11.0+cu130"',
            )
        return str(specifiers), ""
    return f"=={version.public}", version.local or ""


def moment(table: Table, key: str) -> str:
    """Return a TOML date, datetime or string as RFC 3339 in UTC, "" if the key is not there. Raises UsageError `profile-*`.

    A bare date means its first moment in UTC: uv reads one as the end of that day in the machine's own time zone,
    which would make the lock depend on where it was made.
    """
    value = table.raw(key)
    if value is None:
        return ""
    if isinstance(value, str):
        value = table.parsed(key, value.replace("Z", "+00:00"), _parse_moment, "a date such as 2026-05-25")
    if isinstance(value, datetime):
        if value.tzinfo is None:
            table.fail(key, f"has no time zone: {value.isoformat()}", fix=f"{value.isoformat()}Z")
        found = value.astimezone(timezone.utc)
    elif isinstance(value, date):
        found = datetime.combine(value, time(), timezone.utc)
    else:
        table.fail(
            key, f"must be a date, not {show(value)}", code="profile-wrong-type", fix="for example 2026-05-25"
        )
    return found.isoformat(timespec="seconds").replace("+00:00", "Z")


def _parse_moment(text: str) -> date | datetime:
    return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
