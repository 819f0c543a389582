"""`envspec match`: the table of an extension's releases against torch releases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from envspec.check.match import MatchTable, match
from envspec.lock.targets import Target
from envspec.report.errors import UsageError
from envspec.report.progress import Progress
from envspec.torch_abi import exports as torch_exports
from envspec.uv.run import Uv


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    package: str
    target: Target
    most: int
    offline: bool = False


def run_match(request: MatchRequest, progress: Progress) -> MatchTable:
    """The table."""
    uv = Uv(offline=request.offline)
    with progress.stage("match") as stage:
        table = match(request.package, request.target, uv, Path(sys.executable), request.most, stage.detail)
        stage.result = f"{len(table.rows)} releases of {table.package} on {table.machine}"
    return table


def known_torch(torch: str, machine: str) -> str:
    """A torch release as the export table names it: without its label. Raises UsageError `unknown-torch`."""
    table = torch_exports.load()
    release = table.nearest(torch, machine)
    if release is None:
        raise UsageError(
            "unknown-torch",
            f"envspec does not know what torch {torch} exports on {machine}",
            where="--torch",
            fix=f"it knows {', '.join(table.releases(machine))}",
        )
    return release


def render_match(table: MatchTable, torch: str | None) -> Iterator[str]:
    """The table as text; with `torch`, whether each release fits it."""
    yield f"{'version':<16} {'uploaded':<11} {'declares':<12} fits torch (by symbols)"
    for row in table.rows:
        fits = fits_text(row.fits, table.known_torch)
        if row.problem and not row.fits:
            fits = f"unknown: {row.problem}"
        elif not row.imports_torch:
            fits = "any: imports nothing from torch"
        elif row.stable_abi:
            fits += " (stable ABI)"
        mark = ("yes  " if torch in row.fits else "no   ") if torch and row.imports_torch else ""
        yield f"{row.version:<16} {row.uploaded:<11} {row.declares or '-':<12} {mark}{fits}"


def fits_text(fits: tuple[str, ...], known: tuple[str, ...]) -> str:
    """`2.11.0`, `2.11.0 to 2.12.1`, `2.14.0 and later`, `none of 2.8.0 to 2.15.0`."""
    if not fits:
        return f"none of {known[0]} to {known[-1]}"
    first, last = known.index(fits[0]), known.index(fits[-1])
    if last - first + 1 != len(fits):
        return ", ".join(fits)
    if len(fits) == 1 and last != len(known) - 1:
        return fits[0]
    return f"{fits[0]} and later" if last == len(known) - 1 else f"{fits[0]} to {fits[-1]}"
