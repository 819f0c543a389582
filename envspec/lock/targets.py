"""The targets of a lock: every CPython minor of the profile on glibc Linux of every machine that it names.

Decides by names and markers alone (PEP 425, 508, 600) which wheels can serve a target and when a package is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from packaging.markers import Marker
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version


def serves(filename: str, minors: Sequence[str], machines: Sequence[str]) -> bool:
    """Tell whether a wheel can be installed into some CPython of `minors` on glibc Linux of some of `machines`."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return False
    return any(_serves(tag, minor, machine) for tag in tags for minor in minors for machine in machines)


def _serves(tag: Tag, minor: str, machine: str) -> bool:
    if tag.platform == "any":
        return tag.abi == "none" and _python(tag, minor)
    return _platform(tag.platform, machine) and _python(tag, minor)


def _platform(platform: str, machine: str) -> bool:
    return platform == f"linux_{machine}" or (
        platform.startswith("manylinux") and platform.endswith(f"_{machine}")
    )


def _python(tag: Tag, minor: str) -> bool:
    major, number = (int(part) for part in minor.split("."))
    if tag.interpreter.startswith(f"py{major}"):
        # py3 and every py3N up to this minor: pure Python serves later Pythons too.
        since = tag.interpreter.removeprefix(f"py{major}") or "0"
        return tag.abi == "none" and since.isdigit() and int(since) <= number
    if not tag.interpreter.startswith(f"cp{major}"):
        return False
    built_for = tag.interpreter.removeprefix(f"cp{major}")
    if not built_for.isdigit():
        return False
    if int(built_for) == number:
        return tag.abi in (f"cp{major}{number}", "abi3", "none")
    return tag.abi == "abi3" and int(built_for) < number


def needed_on(marker: str, minor: str, machine: str) -> bool:
    """Tell whether a marker is true on some patch of a minor on a machine."""
    return not marker or holds_somewhere(marker, (minor,), (machine,))


def target_environment(python: str, machine: str) -> dict[str, str]:
    """Return the PEP 508 variables of CPython `python` (3.12 or 3.12.1) on glibc Linux of `machine`."""
    full = python if python.count(".") == 2 else f"{python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": ".".join(full.split(".")[:2]),
        "sys_platform": "linux",
        "extra": "",
    }


def canonical_marker(marker: str, minors: Sequence[str], machines: Sequence[str]) -> str:
    """Return the one way to write a marker that is true on the same targets; empty where it is true on all.

    uv writes the same condition in several ways, depending on its version and on what it resolved before; a lock has
    to be byte-identical all the same. A marker can only tell targets apart by machine and Python version, so its truth
    is computed on every machine at every version where it can change, and written out as intervals.
    """
    if not marker:
        return ""
    points = _versions(marker, minors)
    truth = _truth(marker, points, machines)
    if all(all(row) for row in truth.values()):
        return ""
    if len(set(truth.values())) == 1:
        return _intervals(truth[machines[0]], points)
    parts = []
    for machine in sorted(truth):
        if any(truth[machine]):
            python = "" if all(truth[machine]) else _intervals(truth[machine], points)
            python = f"({python})" if " or " in python else python
            parts.append(f"platform_machine == '{machine}'" + (f" and {python}" if python else ""))
    return " or ".join(f"({p})" if " and " in p and len(parts) > 1 else p for p in parts)


def holds_somewhere(marker: str, minors: Sequence[str], machines: Sequence[str]) -> bool:
    """Tell whether a marker is true on any target."""
    return any(any(row) for row in _truth(marker, _versions(marker, minors), machines).values())


def _truth(marker: str, points: Sequence[str], machines: Sequence[str]) -> dict[str, tuple[bool, ...]]:
    parsed = Marker(marker)
    return {m: tuple(parsed.evaluate(target_environment(v, m)) for v in points) for m in machines}


def _versions(marker: str, minors: Sequence[str]) -> tuple[str, ...]:
    """The first patch of every minor, and every patch that the marker names with its successor (3.12 means 3.12.0)."""
    found = {f"{minor}.0" for minor in minors}
    for major, minor, patch in re.findall(r"['\"](\d+)\.(\d+)(?:\.(\d{1,3}))?['\"]", marker):
        if f"{major}.{minor}" in minors:
            found |= {f"{major}.{minor}.{patch or 0}", f"{major}.{minor}.{int(patch or 0) + 1}"}
    return tuple(sorted(found, key=Version))


def _intervals(truth: Sequence[bool], points: Sequence[str]) -> str:
    """`python_full_version >= '3.11' and python_full_version < '3.13'`, for the points where it is true."""
    parts = []
    at = 0
    while at < len(points):
        if not truth[at]:
            at += 1
            continue
        end = at
        while end < len(points) and truth[end]:
            end += 1
        bounds = []
        if at > 0:
            bounds.append(f"python_full_version >= '{points[at].removesuffix('.0')}'")
        if end < len(points):
            bounds.append(f"python_full_version < '{points[end].removesuffix('.0')}'")
        parts.append(" and ".join(bounds))
        at = end
    return " or ".join(f"({p})" if " and " in p and len(parts) > 1 else p for p in parts)


class Target(msgspec.Struct, frozen=True):
    """Says what an environment is for: CPython `python` (`3.12` or `3.12.1`) on `machine`."""

    python: str
    machine: str

    @property
    def minor(self) -> str:
        """Return the Python minor: `3.12`."""
        return ".".join(self.python.split(".")[:2])
