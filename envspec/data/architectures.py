"""GPU architectures: reading `12.0a`, and the one table of what is known about each.

The table is `data/architectures.toml`; this module holds no version number.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from envspec.data import load_table

_ARCH = re.compile(r"(?:sm_?)?(\d{1,2})\.?(\d)([af]?)", re.IGNORECASE)


class Arch(msgspec.Struct, frozen=True):
    """Describes a compute capability with its variant: `a` arch-specific, `f` family-specific, empty for the plain one."""

    major: int
    minor: int
    variant: str = ""

    def __str__(self) -> str:
        return self.dotted

    @property
    def dotted(self) -> str:
        """Return the form of TORCH_CUDA_ARCH_LIST and of profiles: `12.0a`."""
        return f"{self.major}.{self.minor}{self.variant}"

    @property
    def number(self) -> str:
        """Return the form inside `sm_120a` and `compute_120a`: `120a`."""
        return f"{self.major}{self.minor}{self.variant}"

    @property
    def sm(self) -> str:
        """Return the name of machine code (SASS) for this architecture: `sm_120a`."""
        return f"sm_{self.number}"

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Tell whether SASS for this architecture runs on a GPU: within the major upwards, variant `a` only on its own.

        Source: the CUDA C++ programming guide, "Compute Capabilities", family- and architecture-specific features.
        """
        own = (self.major, self.minor)
        return own == capability or (self.variant != "a" and own[0] == capability[0] and own <= capability)


class KnownArch(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one row of the table: an architecture that exists, and the first CUDA release whose nvcc knows it."""

    arch: str
    since_cuda: str
    variants: tuple[str, ...]
    source: str
    as_of: str


@cache
def known_archs() -> tuple[KnownArch, ...]:
    """Return every architecture envspec knows, ascending."""
    return load_table("architectures", KnownArch)


def parse_arch(text: str) -> Arch | None:
    """Read `12.0a`, `120a` or `sm_120a`; None if it is none of these."""
    match = _ARCH.fullmatch(text.strip())
    if not match:
        return None
    return Arch(int(match[1]), int(match[2]), match[3].lower())


def find_known(arch: Arch) -> KnownArch | None:
    """Return the table's row for an architecture, variant included; None if no released GPU has it."""
    plain = f"{arch.major}.{arch.minor}"
    for row in known_archs():
        if row.arch == plain and (not arch.variant or arch.variant in row.variants):
            return row
    return None
