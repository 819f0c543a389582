"""One CUDA_HOME as every JIT expects it, from wheels that are laid out for Python packages.

The wheels' files are hard-linked (or copied where the file system forbids it) into a tree of its own, so that the tree
outlives the venv it came from. On top come the things no wheel ships: `lib64`, the unversioned `lib*.so` links that
`-lcudart` looks for, and the driver stub in `lib64/stubs`. Nothing here knows package names: CUDA 12's one directory a
component and CUDA 13's shared one are both "a directory that holds some of bin, include, lib, nvvm".
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

import msgspec

from envspec.data import load_table
from envspec.fs import file_sha256
from envspec.report.errors import EnvspecError
from envspec.toolkit.stub import HEADERS
from envspec.venv.record import InstalledPackage

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
    """One row of `data/toolkit_parts.toml`."""

    directory: str
    layout: str
    source: str
    as_of: str


class TreeFile(msgspec.Struct, frozen=True):
    """One file of the tree: where it goes (relative to CUDA_HOME), where it comes from, its hash and who owns it."""

    to: str
    source: str
    sha256: str
    owner: str


class TreeLink(msgspec.Struct, frozen=True):
    """One symbolic link of the tree, with a target relative to its own directory."""

    to: str
    target: str


class ToolkitTree(msgspec.Struct, frozen=True):
    """What a CUDA_HOME consists of, before anything is written. Sources are relative to site-packages."""

    files: tuple[TreeFile, ...]
    links: tuple[TreeLink, ...]
    shadowed: tuple[TreeFile, ...] = ()
    """Files of another component that would go to a path already taken by different content."""

    @property
    def digest(self) -> str:
        """Hex digest over paths, contents and links: the identity of the toolchain wherever it lies."""
        rows = [(f.to, f.sha256) for f in self.files], [(x.to, x.target) for x in self.links], LAYOUT_VERSION
        return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()

    def owners(self) -> tuple[str, ...]:
        """The packages it was made from."""
        return tuple(sorted({f.owner for f in self.files}))

    def has(self, path: str) -> bool:
        """Whether a path of the tree is a file or link."""
        return any(f.to == path for f in self.files) or any(x.to == path for x in self.links)


@cache
def _part() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row.directory})" for row in load_table("toolkit_parts", PartRow)))


def plan_tree(packages: Iterable[InstalledPackage]) -> ToolkitTree:
    """Decide the whole tree from the packages' RECORDs. Raises EnvspecError `toolkit-missing`."""
    packages = tuple(packages)
    taken: dict[str, TreeFile] = {}
    shadowed = []
    for file in sorted(_component_files(packages), key=lambda f: (f.to, f.source)):
        first = taken.setdefault(file.to, file)
        if first is not file and first.sha256 != file.sha256:
            shadowed.append(file)
    if not any(path.startswith("include/cccl/") or path.startswith("include/nv/") for path in taken):
        for file in _bundled_cccl(packages):
            taken.setdefault(file.to, file)
    if "bin/nvcc" not in taken:
        raise _no_compiler(taken)
    files = tuple(sorted(taken.values(), key=lambda f: f.to))
    return ToolkitTree(files, _links(taken), tuple(shadowed))


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
    """flashinfer's copy of CCCL, laid out as the cccl wheel lays its own; `nv/` also where the wheel has it."""
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
    """`lib64`, and `libX.so` for the highest `libX.so.N` where no wheel brings it."""
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


def write_tree(tree: ToolkitTree, site_packages: Path, at: Path, stub: bytes) -> None:
    """Write the tree to `at`, which does not exist yet. A source that is a link or is missing is refused."""
    made: set[Path] = set()
    for file in tree.files:
        target = at / file.to
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        place(site_packages / file.source, target)
    stubs = at / "lib" / "stubs"
    stubs.mkdir(parents=True, exist_ok=True)
    (stubs / "libcuda.so").write_bytes(stub)
    (stubs / "libcuda.so").chmod(0o755)
    for link in tree.links:
        (at / link.to).parent.mkdir(parents=True, exist_ok=True)
        (at / link.to).symlink_to(link.target)


def different(tree: ToolkitTree, site_packages: Path, at: Path, stub: bytes) -> list[str]:
    """The paths of a tree that was written before and is not as `write_tree` would make it now.

    A file that is one with its source, or has its content, is the same; anything that was added is left alone.
    """
    found = [f.to for f in tree.files if not _same_file(site_packages / f.source, at / f.to, f.sha256)]
    found += [link.to for link in tree.links if not _leads_to(at / link.to, link.target)]
    return found + ([] if _holds(at / STUB, stub) else [STUB])


def _same_file(source: Path, target: Path, sha256: str) -> bool:
    try:
        one, other = source.lstat(), target.lstat()
        same = (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
        alike = stat.S_ISREG(other.st_mode) and stat.S_IMODE(one.st_mode) == stat.S_IMODE(other.st_mode)
        return same or (alike and file_sha256(target) == sha256)
    except OSError:
        return False


def _leads_to(link: Path, target: str) -> bool:
    try:
        return str(link.readlink()) == target
    except OSError:
        return False


def _holds(file: Path, data: bytes) -> bool:
    try:
        return not file.is_symlink() and file.read_bytes() == data and bool(file.stat().st_mode & 0o100)
    except OSError:
        return False


def put_back(
    tree: ToolkitTree,
    site_packages: Path,
    at: Path,
    stub: bytes,
    paths: Iterable[str],
    modes: Mapping[str, int],
) -> None:
    """Put some paths of a written tree back as `write_tree` made them, each in one step.

    Raises EnvspecError `repair-impossible` where a directory stands in the way.
    """
    sources = {f.to: f.source for f in tree.files}
    links = {link.to: link.target for link in tree.links}
    for path in paths:
        target = at / path
        temporary = target.with_name(f".{target.name}.new")
        if target.is_dir() and not target.is_symlink():
            raise EnvspecError(
                "repair-impossible",
                f"{target} is a directory that envspec did not make",
                fix="move it away and repair again",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        if path in links:
            temporary.symlink_to(links[path])
        elif path == STUB:
            temporary.write_bytes(stub)
            temporary.chmod(0o755)
        else:
            place(site_packages / sources[path], temporary)
            _give_mode(temporary, modes.get(path))
        if not target.is_symlink() and target.exists() and target.samefile(temporary):
            temporary.unlink()  # rename does nothing between two names of one file
        else:
            temporary.replace(target)


def _give_mode(path: Path, mode: int | None) -> None:
    if mode is not None and stat.S_IMODE(path.lstat().st_mode) != mode:
        path.chmod(mode)


def place(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it where links cannot be made. Raises EnvspecError if the source is gone or a link."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            shutil.copy2(source, target, follow_symlinks=False)
        elif error.errno == errno.ENOENT:
            raise EnvspecError(
                "toolkit-file-missing",
                f"{source.name} stands in RECORD but is not on disk",
                where=str(source),
            ) from None
        else:
            raise
    if target.is_symlink():
        raise EnvspecError(
            "toolkit-file-link", f"{source.name} is a link, which no wheel can hold", where=str(source)
        )


def driver_headers(tree: ToolkitTree, site_packages: Path) -> tuple[str, ...]:
    """The text of the headers that declare driver functions, `cuda.h` first. Raises EnvspecError `toolkit-no-cuda-h`."""
    wanted = [f"include/{header}" for header in HEADERS]
    sources = {f.to: f.source for f in tree.files}
    if wanted[0] not in sources:
        raise EnvspecError(
            "toolkit-no-cuda-h",
            "no package of this environment brings cuda.h, so no driver stub can be made",
            fix='add "cudart" to cuda.components of the profile',
        )
    return tuple(
        (site_packages / sources[name]).read_text(encoding="utf-8", errors="replace")
        for name in wanted
        if name in sources
    )
