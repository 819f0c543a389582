"""The checks, a module a topic. They read a machine through `Host` alone."""

from __future__ import annotations

import msgspec

from envspec.profile import Profile
from envspec.report.rules import RuleSet

CHECKS = RuleSet(__name__, ("gpu", "variables", "storage", "resources", "compilers"))


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine is checked for: a profile, if one is named, and where its output is to be."""

    profile: Profile | None = None
    out: str = "out"
    """An absolute path on the machine."""

    @property
    def cuda(self) -> tuple[int, int] | None:
        """Return the CUDA release of the profile's toolkit, None if it is not known."""
        if self.profile is None or self.profile.cuda is None:
            return None
        parts = self.profile.cuda.toolkit.split(".")
        return (int(parts[0]), int(parts[1])) if len(parts) > 1 else None
