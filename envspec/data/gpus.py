"""GPUs by name: what a person types, and what a driver reports. The table is `gpus.toml`."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from envspec.data import load_table
from envspec.data.architectures import Arch, find_known


class Gpu(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one product or series; the fields are explained in the table."""

    name: str
    also: tuple[str, ...]
    reports: str
    arch: str
    unified: bool
    source: str
    as_of: str

    @property
    def capability(self) -> tuple[int, int]:
        """Return the compute capability: (12, 0)."""
        major, minor = self.arch.split(".")
        return int(major), int(minor)

    @property
    def compiles_for(self) -> Arch:
        """Return the architecture that kernels for this GPU are compiled for: with the suffix `a` where there is one."""
        specific = Arch(*self.capability, "a")
        return specific if find_known(specific) else Arch(*self.capability)


@cache
def known_gpus() -> tuple[Gpu, ...]:
    """Return every row of the table, in its order."""
    return load_table("gpus", Gpu)


def gpu_reported(name: str) -> Gpu | None:
    """Return the row for a name that a driver reports (`NVIDIA GeForce RTX 5090`); None where no row fits."""
    plain = name.strip().removeprefix("NVIDIA").strip()
    return next((row for row in known_gpus() if re.fullmatch(row.reports, plain)), None)


def gpu_typed(text: str) -> Gpu | None:
    """Return the row for a name that a person types (`rtx5090`, `RTX PRO 6000`, `h100`); None where no row fits.

    Case, blanks and punctuation do not count, nor do "NVIDIA" and "GeForce"; "RTX" may be left out.
    """
    wanted = _plain(text)
    for row in known_gpus():
        names = [_plain(name) for name in (row.name, re.sub(r"\(.*\)", "", row.name), *row.also)]
        if wanted in names or f"rtx{wanted}" in names:
            return row
    return gpu_reported(text)


def gpus_of(arch: str) -> tuple[str, ...]:
    """Return the names of the GPUs of a compute capability (`12.0`)."""
    return tuple(row.name for row in known_gpus() if row.arch == arch)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]|nvidia|geforce", "", text.lower())
