"""The result of `build` and of `upgrade`."""

from __future__ import annotations

import msgspec


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `build` and `upgrade`.

    `built` is false where there was nothing to do, or where the user said no. The other fields then tell of the current
    generation; they are empty, and `generation` is 0, where there is none to tell of.
    """

    version: int = 1
    command: str
    built: bool
    out: str = ""
    script: str = ""
    generation: int = 0
    digest: str = ""
