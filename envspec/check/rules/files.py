"""One owner for every path."""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import CheckInput, Selection
from envspec.check.rules import RULES
from envspec.data.compatibility import known_winners
from envspec.report.findings import Finding, counted, error, note
from envspec.wheels.file import WheelLooks


@RULES.rule("No two packages own one path with different content, unless the profile says which one wins.")
def file_conflict(looks: WheelLooks, given: CheckInput, selection: Selection) -> Iterator[Finding]:
    owners: dict[str, list[tuple[str, int, int]]] = {}
    for package, look in sorted(looks.by_package.items()):
        for member in look.members:
            owners.setdefault(member.path, []).append((package, member.crc, member.size))
    contested: dict[tuple[str, ...], list[str]] = {}
    for path, who in owners.items():
        if len(who) > 1 and len({(crc, size) for _, crc, size in who}) > 1:
            contested.setdefault(tuple(sorted(p for p, _, _ in who)), []).append(path)
    winners = given.profile.winners
    for packages, paths in sorted(contested.items()):
        declared = [p for p in packages if p in winners]
        if declared:
            best = max(declared, key=winners.index)
            yield note(
                "file-conflict",
                best,
                f"{counted(len(paths), 'path')} of {' and '.join(packages)} {'differs' if len(paths) == 1 else 'differ'}; "
                f"the profile lets {best} win",
                evidence=sorted(paths)[:2],
            )
            continue
        right = next(
            (row.wins for row in known_winners() if {row.wins, row.loses} <= set(packages)), packages[-1]
        )
        yield error(
            "file-conflict",
            right,
            f"{' and '.join(packages)} own {counted(len(paths), 'path')} with different content, "
            "and none is declared to win",
            evidence=sorted(paths)[:4],
            chain=[line for p in packages for line in selection.why(p)],
            fix=f'add "{right}" to install.winners of the profile',
        )
