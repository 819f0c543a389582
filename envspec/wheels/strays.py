"""Paths of several packages that nobody imports: a build script or tests at the top of site-packages, put there by mistake.

What decides is where a package lives: the top-level directory that holds most of its files. A path outside of the main
directories of all its owners is a stray, and so is the `__init__.py` of a directory that packages share as a namespace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping


def main_directory(paths: Iterable[str]) -> str:
    """Return the top-level directory, or module, that holds most of a package's files; empty for one without files.

    `paths` are relative to site-packages.
    """
    tops = Counter(path.split("/", 1)[0] for path in paths)
    own = {
        top: count for top, count in tops.items() if top != ".." and not top.endswith((".dist-info", ".data"))
    }
    return max(own, key=lambda top: (own[top], top), default="")


def strays(contested: Mapping[str, Collection[str]], paths: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return those of the contested paths that are strays.

    `contested` maps a path to the packages that own it, `paths` a package to all of its paths.
    """
    owners = {owner for who in contested.values() for owner in who}
    homes = {owner: main_directory(paths[owner]) for owner in owners}
    return frozenset(
        path
        for path, who in contested.items()
        if path.split("/", 1)[0] not in {homes[owner] for owner in who}
        or _is_shared_namespace(path, who, contested, paths)
    )


def _is_shared_namespace(
    path: str,
    who: Collection[str],
    contested: Mapping[str, Collection[str]],
    paths: Mapping[str, Collection[str]],
) -> bool:
    """Whether the path is the only one in its directory that these packages share, and each has a part of its own there."""
    top, separator, rest = path.partition("/")
    if not separator or rest != "__init__.py":
        return False
    others = [
        p
        for p, owners in contested.items()
        if p != path and p.startswith(f"{top}/") and set(owners) & set(who)
    ]
    parts = [{p.split("/")[1] for p in paths[o] if p.startswith(f"{top}/") and p.count("/") > 1} for o in who]
    return not others and all(parts) and not set.intersection(*parts)
