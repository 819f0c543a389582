"""Python, glibc and the index: is there a file at all, and is it one that may be used?"""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import CheckInput, IndexNotices, Selection, admits
from envspec.check.rules import RULES
from envspec.report.findings import Finding, error, warning
from envspec.report.remedies import RunCommand


@RULES.rule("Every package has a wheel for this Python, machine and glibc.")
def wheel_missing(selection: Selection) -> Iterator[Finding]:
    for name, one in sorted(selection.chosen.items()):
        if one.file is None:
            yield error(
                "wheel-missing",
                name,
                f"{one} has no wheel for CPython {selection.target.minor} on {selection.target.machine} with this glibc",
                evidence=[f.filename for f in one.package.files][:6],
                dependency_paths=selection.why(name),
                fix="use another Python (--python), or pin a version that has one",
            )


@RULES.rule("No package is built from source, unless the profile allows it.")
def sdist(selection: Selection, given: CheckInput) -> Iterator[Finding]:
    for name, one in sorted(selection.chosen.items()):
        if one.file is not None and not one.file.is_wheel and name not in given.profile.allow_sdists:
            yield error(
                "sdist",
                name,
                f"{one} would be built from source: {one.file.filename}",
                dependency_paths=selection.why(name),
                fix=f'pin a version with a wheel, or allow it: resolve.allow-sdists = ["{name}"]',
            )


@RULES.rule("Every package admits the Python of the environment.")
def requires_python(selection: Selection) -> Iterator[Finding]:
    from packaging.version import Version

    python = (
        selection.target.python
        if selection.target.python.count(".") == 2
        else f"{selection.target.python}.99"
    )
    for name, one in sorted(selection.chosen.items()):
        if one.requires_python and not admits(one.requires_python, Version(python)):
            yield error(
                "requires-python",
                name,
                f"{one} requires Python {one.requires_python}, this is {selection.target.python}",
                dependency_paths=selection.why(name),
                fix="narrow python.versions in the profile and lock again",
            )


@RULES.rule("No locked release has been withdrawn (yanked) by its authors.")
def yanked(selection: Selection, notices: IndexNotices, given: CheckInput) -> Iterator[Finding]:
    for name, one in sorted(selection.chosen.items()):
        reason = notices.yanked.get(one.package.pin)
        if reason is not None:
            command = ("envspec", "lock", str(given.profile.path), "--upgrade-package", name)
            yield warning(
                "yanked",
                name,
                f"{one} was yanked from the index",
                evidence=(reason,) if reason else (),
                dependency_paths=selection.why(name),
                remedies=[RunCommand(command, "take another release")],
            )
