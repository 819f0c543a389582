"""What uv resolved (`uv.lock`) as a graph: which package asked for which, at which versions, from which files.

uv.lock is uv's own format; only this module knows it. Versions 1 are read; a newer one is refused rather than guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.utils import canonicalize_name

from envspec.data import load_toml
from envspec.fs import file_sha256
from envspec.report.errors import ExternalError, UsageError
from envspec.uv.project import ROOT
from envspec.wheels.file import ResolvedFile, local_path


class Edge(msgspec.Struct, frozen=True):
    """One package asks for another: `extra` is the extra of the asking package that brings it, if any."""

    to: str
    extra: str = ""
    marker: str = ""


class ResolvedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one package at one version."""

    name: str
    version: str
    wheels: tuple[ResolvedFile, ...]
    sdist: ResolvedFile | None
    edges: tuple[Edge, ...]


class Graph(msgspec.Struct, frozen=True):
    """Holds all packages but the profile itself, and what the profile asks for."""

    packages: tuple[ResolvedPackage, ...]
    roots: tuple[str, ...]

    def requirers(self, name: str) -> Iterator[tuple[ResolvedPackage | None, Edge]]:
        """Yield the packages that require a package; None stands for the profile."""
        if name in self.roots:
            yield None, Edge(name)
        for package in self.packages:
            for edge in package.edges:
                if edge.to == name:
                    yield package, edge


def parse_uv_lock(text: str) -> Graph:
    """Read uv.lock. Raises ExternalError `uv-lock-format` for a version that this envspec does not know."""
    data = load_toml(text)
    if data.get("version") != 1:
        raise ExternalError(
            "uv-lock-format",
            f"this uv writes version {data.get('version')} of its lock, envspec reads version 1",
            fix="upgrade envspec, or install an older uv",
        )
    packages: list[ResolvedPackage] = []
    roots: tuple[str, ...] = ()
    for row in data.get("package", []):
        edges = _edges(row)
        if row["name"] == ROOT and "virtual" in row.get("source", {}):
            roots = tuple(sorted({edge.to for edge in edges}))
            continue
        packages.append(
            ResolvedPackage(
                name=canonicalize_name(row["name"]),
                version=row["version"],
                wheels=tuple(_file(w, row) for w in row.get("wheels", [])),
                sdist=_file(row["sdist"], row) if "sdist" in row else None,
                edges=edges,
            )
        )
    return Graph(tuple(packages), roots)


def prune(graph: Graph, holds: Callable[[str], bool]) -> Graph:
    """Return the graph without edges whose marker holds on no target, and without what is then out of reach."""
    kept = {
        package: tuple(e for e in package.edges if not e.marker or holds(e.marker))
        for package in graph.packages
    }
    by_name: dict[str, list[ResolvedPackage]] = {}
    for package in graph.packages:
        by_name.setdefault(package.name, []).append(package)
    reached = set(graph.roots)
    queue = list(graph.roots)
    for name in queue:
        for package in by_name.get(name, ()):
            for edge in kept[package]:
                if edge.to not in reached:
                    reached.add(edge.to)
                    queue.append(edge.to)
    packages = [msgspec.structs.replace(p, edges=kept[p]) for p in graph.packages if p.name in reached]
    return Graph(tuple(packages), graph.roots)


def with_hashes(graph: Graph) -> Graph:
    """Return the graph with the hashes and sizes that a directory of wheels does not tell, read from the files themselves.

    Raises UsageError `index-no-hash` for a remote file without one: what cannot be verified is not locked.
    """

    def completed(file: ResolvedFile) -> ResolvedFile:
        if file.sha256:
            return file
        path = local_path(file.url)
        if path is None:
            raise UsageError(
                "index-no-hash",
                f"the index gives no sha256 for {file.filename}, so it cannot be verified when it is installed",
                fix="use an index that serves hashes (PEP 503, PEP 691), or a directory of wheels",
            )
        try:
            return msgspec.structs.replace(file, sha256=file_sha256(path), size=path.stat().st_size)
        except OSError as error:
            raise ExternalError(
                "wheel-unreadable", f"cannot read {path}: {error.strerror}", where=str(path)
            ) from None

    packages = [
        msgspec.structs.replace(
            p,
            wheels=tuple(map(completed, p.wheels)),
            sdist=completed(p.sdist) if p.sdist is not None else None,
        )
        for p in graph.packages
    ]
    return Graph(tuple(packages), graph.roots)


def _edges(row: dict[str, Any]) -> tuple[Edge, ...]:
    found = [Edge(canonicalize_name(d["name"]), "", d.get("marker", "")) for d in row.get("dependencies", [])]
    for extra, dependencies in row.get("optional-dependencies", {}).items():
        found += [Edge(canonicalize_name(d["name"]), extra, d.get("marker", "")) for d in dependencies]
    return tuple(dict.fromkeys(found))


def _file(row: dict[str, Any], package: dict[str, Any]) -> ResolvedFile:
    # Directory indexes give a path, relative to the directory that `source` names.
    if "url" in row:
        url = row["url"]
    else:
        url = str(
            PurePosixPath(package.get("source", {}).get("registry", ""))
            / row.get("path", row.get("filename", ""))
        )
    return ResolvedFile(
        filename=unquote(urlsplit(url).path if "://" in url else url).rsplit("/", 1)[-1],
        url=url,
        sha256=row.get("hash", "").removeprefix("sha256:"),
        size=row.get("size", 0),
        uploaded=_seconds(row.get("upload-time", "")),
    )


def _seconds(moment: object) -> str:
    """`2026-03-23T18:11:43.774Z` -> `2026-03-23T18:11:43Z`: enough, and what every index gives."""
    text = moment if isinstance(moment, str) else str(moment or "")
    return text.split(".")[0].rstrip("Z") + "Z" if text else ""
