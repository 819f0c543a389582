"""Families of variants: libraries of which one is meant to be loaded, told by their names.

Packages ship one build for each torch release, CUDA major, FFmpeg release or GPU, and pick at run time:
`libaddon_torch24.so` and `libaddon_torch25.so`, `sm90/common_ops.abi3.so` and `sm100/common_ops.abi3.so`. Only numbers
differ in such names. The build for the default CUDA may go without a number: `hook.abi3.so` beside `hook_cu12.abi3.so`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_PLATFORM = re.compile(r"[-_](?:cu|cuda|rocm)\d+(?![a-z0-9])")
_TORCH = re.compile(r"torch_?([1-9])\.?(\d{1,2})(?!\d)")
_NUMBER = re.compile(r"\d+")


def family_of(path: str) -> str:
    """Return what all variants of one library have in common."""
    return _NUMBER.sub("#", _PLATFORM.sub("", path))


def families(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the paths by family, in their order."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(family_of(path), []).append(path)
    return {key: tuple(members) for key, members in found.items()}


def is_for_another_torch(path: str, torch: str) -> bool:
    """Tell whether a file's name says that it is for a torch release (`torch29`) other than the one at hand (`2.14.1`).

    Its package would not load it then, not even where no other variant fits.
    """
    named = _TORCH.search(path.rpartition("/")[2])
    return named is not None and bool(torch) and named[1] + "." + named[2] != ".".join(torch.split(".")[:2])


def broken_members(paths: Iterable[str], is_broken: Callable[[str], bool], torch: str = "") -> list[str]:
    """Return the broken paths that matter: where one variant is sound, or is not for the `torch` at hand, it may be broken."""
    return [
        path
        for members in families(paths).values()
        if all(is_broken(member) for member in members)
        for path in members
        if not is_for_another_torch(path, torch)
    ]
