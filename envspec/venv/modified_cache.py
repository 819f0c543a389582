"""Files that were changed after they were unpacked, in a venv that was made just now.

uv links wheels' files from its cache. Whoever edits such a file in place, in any environment, changes it in the cache, in
every other environment and in all that are built later; sizes need not differ, and RECORD is not read again. The edit
leaves a trace: uv unpacks a wheel within seconds, and the edited file is younger than its siblings. Only those are read.

Not seen: an edit that restores the time, and edits in a cache on another file system, from which files are copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from envspec.fs import file_sha256
from envspec.report.errors import EnvspecError
from envspec.venv.inventory import FileRow, Inventory

_UNPACKING_NS = 60 * 10**9
"""How long after the middle one of its files a wheel may still be unpacking. A slow disk only costs reading more."""


def altered(inventory: Inventory, venv: Path) -> Iterator[FileRow]:
    """The files whose content is not the one of their wheel, among those that are younger than their siblings."""
    times: dict[str, list[int]] = {}
    for row, sign in zip(inventory.rows, inventory.stats, strict=True):
        if row.counted:
            times.setdefault(row.owner, []).append(sign.mtime_ns)
    middle = {owner: median(found) for owner, found in times.items()}
    for row, sign in zip(inventory.rows, inventory.stats, strict=True):
        young = row.counted and sign.mtime_ns > middle[row.owner] + _UNPACKING_NS
        if young and file_sha256(venv / row.path) != row.sha256:
            yield row


def refuse_altered(inventory: Inventory, venv: Path) -> None:
    """Raises EnvspecError `cache-altered`."""
    found = list(altered(inventory, venv))
    if found:
        owners = sorted({row.owner for row in found})
        raise EnvspecError(
            "cache-altered",
            f"{found[0].path} is not the file that its wheel brought"
            + (f", and {len(found) - 1} more are not" if len(found) > 1 else ""),
            where=str(venv / found[0].path),
            why="it is a link into uv's cache; somebody edited it in place, here or in another environment",
            fix=f"uv cache clean {' '.join(owners)}, then build again; verify --hash finds it in other environments",
        )
