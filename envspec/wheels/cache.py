"""envspec's own cache of what it read from the network. Everything in it can be made again; nothing in it is trusted blindly."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

MAX_ENTRY = 64 << 20


class NotKept(Exception):
    """Something is not in this cache, and where to read it is not known."""


def cache_dir() -> Path:
    """Return where envspec keeps what it has read from the network: $ENVSPEC_CACHE_DIR, else under XDG_CACHE_HOME."""
    chosen = os.environ.get("ENVSPEC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envspec"


def read_bytes(path: Path) -> bytes:
    """Return a kept entry. Raise OSError if there is none (or none of a sane size)."""
    with path.open("rb") as file:
        data = file.read(MAX_ENTRY + 1)
    if len(data) > MAX_ENTRY:
        raise OSError(f"{path} is too large")
    return data


def keep_bytes(path: Path, data: bytes) -> None:
    """Keep an entry so that another process never sees half of it; a cache that cannot be written is no error."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
