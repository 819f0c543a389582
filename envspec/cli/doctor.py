"""`envspec doctor`: which checks, for which profile."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from envspec.data.shipped import find_profile
from envspec.doctor import run_checks
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.machine import Host
from envspec.profile import read_profile
from envspec.report.errors import UsageError
from envspec.report.findings import Report, report
from envspec.report.rules import Rule


class DoctorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for: a profile or none, and names of checks or none (all)."""

    profile: str | None = None
    checks: tuple[str, ...] = ()
    out: Path = Path("out")


def read_words(words: Sequence[str], out: Path) -> DoctorRequest:
    """`[PROFILE] [CHECK...]`: a word that names a check is a check, a first word that does not is the profile."""
    names = {row.code for row in CHECKS.all()}
    profile = words[0] if words and words[0] not in names else None
    checks = tuple(words[1:] if profile is not None else words)
    for name in checks:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            raise UsageError(
                "doctor-check",
                f"doctor has no check {name!r}",
                fix=f"did you mean {close[0]}?" if close else "envspec doctor --list shows them",
            )
    return DoctorRequest(profile=profile, checks=checks, out=out)


def run_doctor(request: DoctorRequest, host: Host | None = None) -> Report:
    """Look at the host. Raises what reading the profile raises."""
    profile = read_profile(find_profile(request.profile)) if request.profile is not None else None
    wanted = Wanted(profile=profile, out=str(request.out.absolute()))
    chosen = [row for row in CHECKS.all() if not request.checks or row.code in request.checks]
    subject = str(profile.path) if profile is not None else "this machine"
    return report("doctor", subject, run_checks(host or Host(), wanted, chosen))


def list_checks(checks: Sequence[Rule]) -> Iterator[str]:
    """One line a check."""
    width = max(len(row.code) for row in checks)
    for row in checks:
        yield f"{row.code:<{width}}  {row.summary}{' (slow)' if row.slow else ''}"
