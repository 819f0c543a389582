"""The table of probes: `data/probes.toml`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

import msgspec

from envspec.data import load_table
from envspec.report.errors import UsageError

SCRIPTS = Path(__file__).parent / "scripts"


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Describes one probe; the fields are explained in the table."""

    name: str
    means: str
    packages: tuple[str, ...]
    script: str
    jobs: int
    memory: int
    seconds: int
    timeout: int
    toolkit: bool = True

    @property
    def path(self) -> Path:
        """Return the path of the script."""
        return SCRIPTS / self.script


@cache
def probe_rows() -> tuple[ProbeRow, ...]:
    """Return every probe, the quick ones of the toolkit first."""
    return load_table("probes", ProbeRow)


def choose(names: Sequence[str], installed: Collection[str]) -> tuple[ProbeRow, ...]:
    """Return the probes of these names, or all whose packages are installed.

    Raises UsageError `probe-unknown`, or `probe-not-installed` for a named one whose packages are missing.
    """
    rows = {row.name: row for row in probe_rows()}
    for name in names:
        if name not in rows:
            close = difflib.get_close_matches(name, rows, n=1, cutoff=0.5)
            raise UsageError(
                "probe-unknown",
                f"there is no probe {name!r}",
                fix=f"did you mean {close[0]}?" if close else f"one of: {', '.join(rows)}",
            )
        missing = [package for package in rows[name].packages if package not in installed]
        if missing:
            raise UsageError(
                "probe-not-installed",
                f"{name} needs {', '.join(missing)}, which this environment does not have",
                fix="add it to [packages] of the profile and build again",
            )
    return tuple(
        row
        for row in rows.values()
        if (row.name in names if names else all(package in installed for package in row.packages))
    )
