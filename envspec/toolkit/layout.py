"""One CUDA_HOME as every JIT expects it, from wheels that are laid out for Python packages.

To the wheels' files come the things no wheel ships: `lib64`, the unversioned `lib*.so` links that `-lcudart` looks for, and
the driver stub in `lib64/stubs`. Nothing here knows package names: CUDA 12's one directory a component and CUDA 13's shared
one are both "a directory that holds some of bin, include, lib, nvvm". Here it is decided; `write` puts it on disk.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import PurePosixPath

import msgspec

from envspec.data import load_table
from envspec.report.errors import EnvspecError
from envspec.venv.owners import InstalledPackage

LAYOUT_VERSION = 1
"""Raised whenever the same wheels would give another tree."""

_SHARED = re.compile(r"(lib[A-Za-z0-9_+.-]+?)\.so\.(\d+(?:\.\d+)*)")
STUB = "lib/stubs/libcuda.so"
"""Where the driver stub lies in the tree."""

_TOP = ("bin", "include", "lib", "nvvm")
_BUNDLED_CCCL = "flashinfer/data/cccl"
# Where the headers lie inside flashinfer's copy, which is the upstream repository's layout.
_BUNDLED_PARTS = {"libcudacxx/include/": "", "cub/": "", "thrust/": ""}


class PartRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one row of `data/toolkit_parts.toml`."""

    directory: str
    layout: str
    source: str
    as_of: str


class TreeFile(msgspec.Struct, frozen=True):
    """Describes one file of the tree: where it goes (relative to CUDA_HOME), where it comes from, its hash and who owns it."""

    to: str
    source: str
    sha256: str
    owner: str


class TreeLink(msgspec.Struct, frozen=True):
    """Describes one symbolic link of the tree, with a target relative to its own directory."""

    to: str
    target: str


class ToolkitTree(msgspec.Struct, frozen=True):
    """Says what a CUDA_HOME consists of, before anything is written. Sources are relative to site-packages."""

    files: tuple[TreeFile, ...]
    links: tuple[TreeLink, ...]

    @property
    def digest(self) -> str:
        """Return a hex digest over paths, contents and links: the identity of the toolchain wherever it lies."""
        rows = [(f.to, f.sha256) for f in self.files], [(x.to, x.target) for x in self.links], LAYOUT_VERSION
        return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()

    @property
    def name(self) -> str:
        """Return the name of the toolchain's directory: enough of the digest to be unique, short enough for a path."""
        return self.digest[:16]

    def owners(self) -> tuple[str, ...]:
        """Return the packages it is made from."""
        return tuple(sorted({f.owner for f in self.files}))


@cache
def _part() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row.directory})" for row in load_table("toolkit_parts", PartRow)))


def plan_tree(packages: Iterable[InstalledPackage]) -> ToolkitTree:
    """Decide the whole tree from the packages' RECORDs. Raises EnvspecError `toolkit-missing`."""
    packages = tuple(packages)
    taken: dict[str, TreeFile] = {}
    for file in sorted(_component_files(packages), key=lambda f: (f.to, f.source)):
        taken.setdefault(file.to, file)
    if not any(path.startswith("include/cccl/") or path.startswith("include/nv/") for path in taken):
        for file in _bundled_cccl(packages):
            taken.setdefault(file.to, file)
    if "bin/nvcc" not in taken:
        raise _no_compiler(taken)
    return ToolkitTree(tuple(sorted(taken.values(), key=lambda f: f.to)), _links(taken))


def _no_compiler(taken: Mapping[str, TreeFile]) -> EnvspecError:
    assembler = taken.get("bin/ptxas")
    return EnvspecError(
        "toolkit-missing",
        "no package of this environment brings nvcc",
        why=f"{assembler.owner} brings ptxas, but no wheel of CUDA 12 holds nvcc or cicc"
        if assembler
        else "",
        fix='ask for a toolkit whose wheels hold a compiler in the profile: [cuda] toolkit = "13.2.1"',
    )


def _component_files(packages: Iterable[InstalledPackage]) -> Iterable[TreeFile]:
    for package in packages:
        for row in package.rows:
            if not row.path.startswith("nvidia/"):
                continue
            parts = PurePosixPath(row.path).parts
            if len(parts) < 4 or parts[2] not in (*_TOP, "lib64") or not _part().fullmatch(parts[1]):
                continue
            if parts[-1].endswith((".py", ".pyc", ".pyi")) or ".." in parts:
                continue
            top = "lib" if parts[2] == "lib64" else parts[2]
            yield TreeFile("/".join((top, *parts[3:])), row.path, row.sha256, package.name)


def _bundled_cccl(packages: Iterable[InstalledPackage]) -> Iterable[TreeFile]:
    """Yield flashinfer's copy of CCCL, laid out as the cccl wheel lays its own; `nv/` also where the wheel has it."""
    for package in packages:
        for row in package.rows:
            if not row.path.startswith(_BUNDLED_CCCL + "/") or ".." in PurePosixPath(row.path).parts:
                continue
            inner = row.path.removeprefix(_BUNDLED_CCCL + "/")
            for prefix, replacement in _BUNDLED_PARTS.items():
                header = replacement + inner.removeprefix(prefix)
                if inner.startswith(prefix) and header.startswith(("cuda/", "nv/", "cub/", "thrust/")):
                    yield TreeFile(f"include/cccl/{header}", row.path, row.sha256, package.name)
                    if header.startswith("nv/"):
                        yield TreeFile(f"include/{header}", row.path, row.sha256, package.name)


def _links(taken: Mapping[str, TreeFile]) -> tuple[TreeLink, ...]:
    """Return `lib64`, and `libX.so` for the highest `libX.so.N` where no wheel brings it."""
    links = {"lib64": "lib", "lib/stubs/libcuda.so.1": "libcuda.so"}
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for path in taken:
        directory, _, name = path.rpartition("/")
        match = _SHARED.fullmatch(name)
        if directory == "lib" and match:
            version = tuple(int(n) for n in match[2].split("."))
            best = newest.get(match[1])
            if best is None or version > best[0]:
                newest[match[1]] = (version, name)
    for stem, (_, name) in newest.items():
        if f"lib/{stem}.so" not in taken:
            links[f"lib/{stem}.so"] = name
    return tuple(TreeLink(to, target) for to, target in sorted(links.items()))
