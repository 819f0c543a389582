"""The checks, a module a topic. They read a machine through `Host` alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envspec.host.python import ChosenPython
from envspec.profile import Profile
from envspec.report.rules import RuleSet
from envspec.uv.run import Uv
from envspec.venv.interpreter import choose_python

CHECKS = RuleSet(__name__, ("gpu", "variables", "storage", "resources", "compilers"))


class UvAnswers:
    """Says what uv tells of this machine. It is asked only when a check wants to know, for starting it takes time."""

    def python_for(self, profile: Profile) -> ChosenPython:
        """Return the interpreter that a build of the profile would take. Raises EnvspecError."""
        return choose_python(profile, Uv(offline=True), Path("/"))

    def cache_directory(self) -> str:
        """Return where uv keeps what it downloads. Raises EnvspecError."""
        return str(Uv(offline=True).cache_directory())


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Says what the machine is checked for: a profile, if one is named, and where its output is to be; and whom to ask of uv."""

    profile: Profile | None = None
    out: str = "out"
    """An absolute path on the machine."""
    uv: UvAnswers = UvAnswers()

    @property
    def cuda(self) -> tuple[int, int] | None:
        """Return the CUDA release of the profile's toolkit, None if it is not known."""
        if self.profile is None or self.profile.cuda is None:
            return None
        parts = self.profile.cuda.toolkit.split(".")
        return (int(parts[0]), int(parts[1])) if len(parts) > 1 else None
