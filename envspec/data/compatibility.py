"""The tables that rules look things up in. The knowledge is in `data/*.toml`; here is only how to ask."""

from __future__ import annotations

from functools import cache

import msgspec
from packaging.version import InvalidVersion, Version

from envspec.data import load_table


class CompilerRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Holds the newest major of a host compiler that one nvcc accepts."""

    family: str
    cuda: str
    newest: int
    source: str
    as_of: str


class TritonRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Holds the newest ptxas inside a triton wheel."""

    triton: str
    ptxas: str
    source: str
    as_of: str


class DriverRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Holds the first Linux driver of a CUDA release."""

    cuda: str
    driver: str
    source: str
    as_of: str


class CompanionGroup(msgspec.Struct, frozen=True, rename="kebab"):
    """Names packages whose versions go together. `same` says what must be equal: `version`, `public`, or `table`."""

    members: tuple[str, ...]
    same: str
    why: str
    source: str
    as_of: str
    table: tuple[tuple[str, ...], ...] = ()

    def key(self, name: str, version: Version) -> str:
        """Return what has to be equal for all members of the group."""
        if self.same == "table":
            # A row holds one minor for each member, in the members' order; the first one names the row.
            minor = f"{version.major}.{version.minor}"
            column = self.members.index(name)
            return next((row[0] for row in self.table if row[column] == minor), f"{name} {minor}")
        return version.public if self.same == "public" else str(version)


class BreakageRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Names two packages that are known to break each other."""

    package: str
    versions: str
    beside: str
    beside_versions: str
    why: str
    fix: str
    source: str
    as_of: str


class PrecedenceRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Names two packages that own the same paths, and the one whose files are right."""

    loses: str
    wins: str
    why: str
    source: str
    as_of: str


class CudaPinRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes a package by whose pin a torch wheel tells its CUDA release."""

    package: str
    why: str
    source: str
    as_of: str


class NoFamilyRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Holds the beginning of names that only look like those of a library for one CUDA major."""

    prefix: str
    why: str
    source: str
    as_of: str


@cache
def torch_cuda_packages() -> tuple[str, ...]:
    """Return the packages by whose exact pin a torch wheel tells its CUDA release, the most telling first."""
    return tuple(row.package for row in load_table("torch_cuda_packages", CudaPinRow))


@cache
def without_cuda_family() -> tuple[str, ...]:
    """Return the beginnings of the names of NVIDIA's packages that are not for one CUDA major."""
    return tuple(row.prefix for row in load_table("cuda_families", NoFamilyRow))


@cache
def known_precedence() -> tuple[PrecedenceRow, ...]:
    """Return all pairs."""
    return load_table("known_precedence", PrecedenceRow)


@cache
def companion_groups() -> tuple[CompanionGroup, ...]:
    """Return all groups."""
    return load_table("companions", CompanionGroup)


@cache
def known_breakages() -> tuple[BreakageRow, ...]:
    """Return all pairs."""
    return load_table("known_breakages", BreakageRow)


@cache
def _drivers() -> tuple[DriverRow, ...]:
    return load_table("drivers", DriverRow)


def compiler_limit(family: str, cuda: tuple[int, int]) -> int | None:
    """Return the newest major of gcc or clang that nvcc of a CUDA release accepts; None if it is not known."""
    rows = {row.cuda: row.newest for row in load_table("host_compilers", CompilerRow) if row.family == family}
    return rows.get(f"{cuda[0]}.{cuda[1]}")


def ptxas_of_triton(triton: str) -> str | None:
    """Return the CUDA release of the newest ptxas in a triton wheel; None if it is not known."""
    rows = {row.triton: row.ptxas for row in load_table("triton_ptxas", TritonRow)}
    return rows.get(triton)


def driver_of_cuda(cuda: str) -> str | None:
    """Return the first Linux driver of a CUDA release (`13.0`); None if it is not known."""
    return next((row.driver for row in _drivers() if row.cuda == cuda), None)


def cuda_of_driver(driver: str) -> str | None:
    """Return the CUDA release that a driver brings; None for one older than all that are known, or no version at all."""
    try:
        wanted = Version(driver)
    except InvalidVersion:
        return None
    fitting = [row.cuda for row in _drivers() if Version(row.driver) <= wanted]
    return max(fitting, key=Version, default=None)
