"""One owner for every path."""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import CheckInput, Selection
from envspec.check.rules import RULES
from envspec.data.compatibility import known_precedence
from envspec.report.findings import Finding, counted, error, note
from envspec.report.remedies import AddToList, words_of
from envspec.wheels.file import SetContents


@RULES.rule(
    "No two packages own one path with different content, unless the profile says whose file takes precedence."
)
def file_conflict(contents: SetContents, given: CheckInput, selection: Selection) -> Iterator[Finding]:
    precedence = given.profile.precedence
    for packages, paths in sorted(_conflicts(contents).items()):
        declared = [p for p in packages if p in precedence]
        if declared:
            best = max(declared, key=precedence.index)
            yield note(
                "file-conflict",
                best,
                f"{counted(len(paths), 'path')} of {' and '.join(packages)} {'differs' if len(paths) == 1 else 'differ'}; "
                f"by the profile, {best} takes precedence",
                evidence=sorted(paths)[:2],
            )
            continue
        known = tuple(row.wins for row in known_precedence() if {row.wins, row.loses} <= set(packages))
        remedy = AddToList("install.precedence", known or packages[-1:])
        # Of files that no package imports either will do; elsewhere only a person can tell whose file is right.
        decided = known or all("/" not in path for path in paths)
        yield error(
            "file-conflict",
            remedy.values[0],
            f"{' and '.join(packages)} own {counted(len(paths), 'path')} with different content, "
            "and the profile names none of them",
            evidence=sorted(paths)[:4],
            dependency_paths=[line for p in packages for line in selection.why(p)],
            fix=words_of([remedy]),
            remedies=[remedy] if decided else [],
        )


def _conflicts(contents: SetContents) -> dict[tuple[str, ...], list[str]]:
    """Return the paths that several packages own with different content, by these packages."""
    owners: dict[str, list[tuple[str, int, int]]] = {}
    for package, wheel in sorted(contents.by_package.items()):
        for member in wheel.members:
            owners.setdefault(member.path, []).append((package, member.crc, member.size))
    found: dict[tuple[str, ...], list[str]] = {}
    for path, who in owners.items():
        if len(who) > 1 and len({(crc, size) for _, crc, size in who}) > 1:
            found.setdefault(tuple(sorted(p for p, _, _ in who)), []).append(path)
    return found
