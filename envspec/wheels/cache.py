"""envspec's own cache of what it read from the network. Everything in it can be made again; nothing in it is trusted blindly."""

from __future__ import annotations

import contextlib
import os
import re
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


def entry(kind: str, sha256: str, suffix: str, scope: str = "") -> Path | None:
    """Return the path of an entry; None where `sha256` is no hash, so that nothing an index says becomes a path.

    `scope` keeps apart what different indexes say, see `IndexAccess`.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", sha256) or not re.fullmatch(r"[0-9a-f]{0,16}", scope):
        return None
    return cache_dir() / kind / f"{sha256}{'-' if scope else ''}{scope}{suffix}"


def read_bytes(path: Path | None) -> bytes:
    """Return a kept entry. Raise OSError if there is none (or none of a sane size)."""
    if path is None:
        raise FileNotFoundError
    with path.open("rb") as file:
        data = file.read(MAX_ENTRY + 1)
    if len(data) > MAX_ENTRY:
        raise OSError(f"{path} is too large")
    return data


def keep_bytes(path: Path | None, data: bytes) -> None:
    """Keep an entry so that another process never sees half of it; a cache that cannot be written is no error."""
    temporary = None
    if path is None:
        return
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
