"""Releases that do not exist yet on a profile's date: what uv refuses for it, told with both dates.

uv names the date only where nothing else stands in the way. Where another package contradicts a pin, its reason is about
the two packages; so each exact pin that the reason names is asked for alone.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.uv.project import resolution_project
from envspec.uv.run import Uv

# uv 0.13.9: "hint: `torch` was filtered by `exclude-newer` to only include packages uploaded before 2026-05-25T00:00:00Z. The
# requested version, v2.13.0, was published at 2026-09-01T00:00:00Z." For a range it is "The latest version satisfying the
# requirement is v2.13.0, published at ...".
_HINT = re.compile(
    r"hint: `(?P<package>[^`]+)` was filtered by `exclude-newer`[^\n]*?"
    r"(?:requested version,|requirement is) v(?P<version>[^\s,]+),[^\n]*?published at (?P<moment>[0-9T:.Z+-]+)"
)
_REFUSALS = ("unsatisfiable", "no-such-version")


class _Release(msgspec.Struct, frozen=True):
    """A release, and when it was published (RFC 3339)."""

    package: str
    version: str
    moment: str

    def __str__(self) -> str:
        return f"{self.package} {self.version} was published on {self.moment[:10]}"


def named_in(text: str, package: str) -> bool:
    """Return whether a text of uv's names a package, and not only one whose name holds this one's."""
    return re.search(rf"(?<![a-z0-9-]){re.escape(package)}(?![a-z0-9-])", text) is not None


def explain_date(refusal: UsageError, profile: Profile, uv: Uv, python: Path) -> UsageError:
    """Return UsageError `newer-than-date` where the profile's date is why uv refused, else the refusal as it is."""
    if not profile.exclude_newer or refusal.code not in _REFUSALS:
        return refusal
    newer = tuple(dict.fromkeys((*_told(refusal.why), *_pins(refusal, profile, uv, python))))
    if not newer:
        return refusal
    date = profile.exclude_newer.removesuffix("T00:00:00Z")
    others = f", and {len(newer) - 1} more releases too" if len(newer) > 1 else ""
    reason = "\n".join(line for line in refusal.why.splitlines() if "hint:" not in line)
    return UsageError(
        "newer-than-date",
        f"{newer[0]}, after the date of the profile ({date}){others}",
        where=f"{profile.path}: resolve.exclude-newer",
        why="\n".join([*map(str, newer[1:]), reason]),
        fix=f"move resolve.exclude-newer to {_day_after(newer)} or later, or pin a release that is older than it",
    )


def _pins(refusal: UsageError, profile: Profile, uv: Uv, python: Path) -> Iterator[_Release]:
    for package in profile.packages:
        if package.specifier.startswith("==") and named_in(refusal.why, package.name):
            with tempfile.TemporaryDirectory(prefix="envspec-pin-") as work:
                resolution_project(profile, [package.requirement]).write(Path(work))
                try:
                    uv.lock(Path(work), python, None)
                except UsageError as error:
                    yield from _told(error.why)


def _told(reason: str) -> Iterator[_Release]:
    for found in _HINT.finditer(reason):
        yield _Release(found["package"], found["version"], found["moment"])


def _day_after(releases: tuple[_Release, ...]) -> str:
    last = max(release.moment for release in releases)
    return (datetime.fromisoformat(last[:10]) + timedelta(days=1)).date().isoformat()
