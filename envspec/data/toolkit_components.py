"""Which package brings which part of the CUDA toolkit: the table `data/toolkit_components.toml`."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from envspec.data import load_table

_SUFFIX = re.compile(r"-cu\d\d$")


class Component(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one part. Without those with `jit`, nothing compiles; `since` is the first CUDA major whose wheels hold it whole.

    `also_in`: another package that brings it.
    """

    component: str
    package: str
    jit: bool
    why: str
    source: str
    as_of: str
    since: int = 0
    also_in: str = ""


@cache
def components() -> tuple[Component, ...]:
    """Return all rows."""
    return load_table("toolkit_components", Component)


def component_of(package: str) -> str | None:
    """Return the component that a package brings: `nvcc` for nvidia-cuda-nvcc and nvidia-cuda-nvcc-cu12; None for others."""
    plain = _SUFFIX.sub("", package)
    return next((row.component for row in components() if row.package == plain), None)


def first_major_with(component: str) -> int:
    """Return the first CUDA major whose wheels hold a component whole, 0 if all do."""
    return next(row.since for row in components() if row.component == component)


def package_of(component: str) -> str:
    """Return the package that brings a component: `nvidia-cuda-nvcc` for `nvcc`."""
    return next(row.package for row in components() if row.component == component)
