"""A toolkit tree on disk: writing it, comparing it, putting parts of it back.

The wheels' files are hard-linked (or copied where the file system forbids it) into a tree of its own, so that the tree
outlives the venv it came from.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from envspec.fs import file_sha256, walk
from envspec.report.errors import EnvspecError
from envspec.toolkit.layout import STUB, ToolkitTree


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


def changed_paths(tree: ToolkitTree, site_packages: Path, at: Path, stub: bytes) -> list[str]:
    """Return the paths of a tree that was written before and is not as `write_tree` would make it now.

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


def remove_unknown(at: Path, known: Collection[str]) -> None:
    """Remove files and links from a CUDA_HOME that are not in `known`: it belongs to envspec alone. Directories stay."""
    for path, entry in list(walk(at)):
        if path not in known:
            Path(entry.path).unlink(missing_ok=True)


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
