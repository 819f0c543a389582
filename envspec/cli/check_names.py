"""What there is to be run: the checks of `doctor`, the probes of `probe`."""

from __future__ import annotations

import msgspec


class CheckName(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one check of `doctor` or one probe. `packages` are those that a probe needs."""

    name: str
    means: str
    slow: bool = False
    packages: tuple[str, ...] = ()


class CheckNames(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `doctor --list` and `probe --list`."""

    version: int = 1
    command: str
    checks: tuple[CheckName, ...]
