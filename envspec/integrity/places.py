"""The output around its files: the links that people type, and who may write where programs and modules are looked for.

What is compared: the four entry points are the links that envspec made; the script and the directories on the way to it, to
the interpreter, to the packages and to CUDA_HOME belong to the output's owner, or to whom they belonged when they were
published, and give no more people the right to write than then.

Not looked at: directories deep in the packages, and access lists.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from envspec.fs import link_to
from envspec.output.generations import LINKS, Generation, Output
from envspec.venv.inventory import StatRow, stat_row

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Entry(msgspec.Struct, frozen=True):
    """Describes an entry point that is not as envspec made it. `found` is what the link names, empty where it is missing.

    `foreign`: a file or directory, not a link, is in its place, which envspec does not remove.
    """

    name: str
    found: str
    foreign: bool = False


class Writable(msgspec.Struct, frozen=True):
    """Describes a place that more people may write to than when it was published; `mode` takes that back."""

    path: str
    mode: int


class Places(msgspec.Struct, frozen=True):
    """Says what is wrong around the files. Paths are relative to the output's root, which itself is `.`."""

    entries: tuple[Entry, ...] = ()
    writable: tuple[Writable, ...] = ()
    owners: tuple[str, ...] = ()
    """They belong to somebody else."""

    def __bool__(self) -> bool:
        """Tell whether anything is wrong."""
        return bool(self.entries or self.writable or self.owners)


def places_of(
    output: Output, generation: Generation, site_packages: str, toolchain: str
) -> tuple[StatRow, ...]:
    """Ask the file system about the script and the directories that decide what runs; what is not there is left out."""
    paths = (
        output.root,
        output.state,
        output.generations_dir,
        output.toolchains_dir,
        generation.path,
        generation.script,
        generation.venv,
        generation.venv / "bin",
        generation.venv / site_packages,
        output.toolchains_dir / toolchain,
        output.toolchains_dir / toolchain / "bin",
    )
    rows = []
    for path in paths:
        with contextlib.suppress(OSError):
            rows.append(stat_row(path.relative_to(output.root).as_posix(), path.stat()))
    return tuple(rows)


def compare_places(output: Output, now: Iterable[StatRow], published: Iterable[StatRow]) -> Places:
    """Compare the places with those of the day of publishing, and the entry points with the links that belong there."""
    rows, then = tuple(now), {row.path: row for row in published}
    owner = next((row.user for row in rows if row.path == "."), -1)
    entries = [_entry(output.root / name, target) for name, target in LINKS.items()]
    return Places(
        entries=tuple(entry for entry in entries if entry is not None),
        writable=tuple(
            Writable(row.path, row.permissions & ~bits)
            for row in rows
            if (bits := _new_bits(row.mode, then.get(row.path)))
        ),
        owners=tuple(row.path for row in rows if is_foreign(row, then.get(row.path), owner)),
    )


def is_foreign(now: StatRow, then: StatRow | None, owner: int) -> bool:
    """Tell whether a file belongs neither to the output's owner nor to whom it belonged when it was published."""
    if owner == -1 or now.user == owner:
        return False
    return then is not None and then.user != -1 and now.user != then.user


def mend_places(output: Output, places: Places) -> tuple[str, ...]:
    """Make the entry points links to the current generation again, and take the right to write from who did not have it.

    Return the paths that were mended. Raises EnvspecError `output-foreign` where a file or directory is in the way.
    """
    for entry in places.entries:
        link_to(output.root / entry.name, LINKS[entry.name])
    for place in places.writable:
        (output.root / place.path).chmod(place.mode)
    return (*(entry.name for entry in places.entries), *(place.path for place in places.writable))


def _entry(path: Path, target: str) -> Entry | None:
    try:
        found = os.readlink(path)  # noqa: PTH115 - a Path would tidy the target up
    except FileNotFoundError:
        return Entry(path.name, "")
    except OSError:
        return Entry(path.name, "", foreign=True)
    return None if found == target else Entry(path.name, found)


def _new_bits(mode: int, then: StatRow | None) -> int:
    """Return the bits for writing that were not set then; of an older envspec's output only everybody's is known to be one."""
    before = then.mode if then is not None else stat.S_IWGRP
    return mode & ~before & _OTHERS
