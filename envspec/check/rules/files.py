"""One owner for every path."""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import CheckInput, Selection
from envspec.check.rules import RULES
from envspec.data.compatibility import known_precedence
from envspec.report.findings import Finding, counted, error, note
from envspec.report.remedies import AddToList, words_of
from envspec.wheels.file import SetContents
from envspec.wheels.strays import strays


@RULES.rule(
    "No two packages own one path with different content, unless the profile says whose file takes precedence."
)
def file_conflict(contents: SetContents, given: CheckInput, selection: Selection) -> Iterator[Finding]:
    precedence = given.profile.precedence
    found = _conflicts(contents)
    unused = strays(
        {path: packages for packages, paths in found.items() for path in paths},
        {name: [m.path for m in wheel.members] for name, wheel in contents.by_package.items()},
    )
    for packages, paths in sorted(found.items()):
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
        if unused.issuperset(paths):
            yield note(
                "file-conflict",
                packages[-1],
                f"{counted(len(paths), 'path')} of {' and '.join(packages)} {'differs' if len(paths) == 1 else 'differ'}, "
                f"outside of what they are imported as; {packages[-1]}'s is taken",
                evidence=sorted(paths)[:2],
            )
            continue
        known = tuple(row.wins for row in known_precedence() if {row.wins, row.loses} <= set(packages))
        remedy = AddToList("install.precedence", known or packages[-1:])
        yield error(
            "file-conflict",
            remedy.values[0],
            f"{' and '.join(packages)} own {counted(len(paths), 'path')} with different content, "
            "and the profile names none of them",
            evidence=sorted(paths)[:4],
            dependency_paths=[line for p in packages for line in selection.why(p)],
            fix=words_of([remedy]),
            # Whose file is right only a person can tell, where no table does.
            remedies=[remedy] if known else [],
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
