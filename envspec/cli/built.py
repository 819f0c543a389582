"""The result of `build` and of `upgrade`."""

from __future__ import annotations

import msgspec

from envspec.build.plan import BuildResult


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `build` and `upgrade`.

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


def built_of(command: str, result: BuildResult) -> Built:
    """Return what a build came to, as it is shown."""
    return Built(
        command=command,
        built=result.built,
        out=str(result.out),
        script=str(result.script),
        generation=result.generation,
        digest=result.digest,
    )
