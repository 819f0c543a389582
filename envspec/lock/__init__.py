"""The lock: exactly which files make up an environment, in the requirements format that uv and pip install."""

from envspec.lock.model import Lock, LockedFile, LockedPackage, OverrideRecord
from envspec.lock.text import parse_lock, read_lock, render_lock

__all__ = [
    "Lock",
    "LockedFile",
    "LockedPackage",
    "OverrideRecord",
    "parse_lock",
    "read_lock",
    "render_lock",
]
