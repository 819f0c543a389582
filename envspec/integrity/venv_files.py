"""Changing files of a published venv, each in one step, and never outside of it: what somebody planted there as a link, on the
way to a path or at it, is not followed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from envspec.fs import BYTECODE, names_in, remove_tree, write_synced
from envspec.report.errors import EnvspecError
from envspec.venv.inventory import FileRow


class VenvFiles:
    """Holds the files of one venv. `permissions` are those of the day of publishing, by path."""

    def __init__(self, venv: Path, permissions: Mapping[str, int]) -> None:
        self._venv = venv
        self._real = os.path.realpath(venv)
        self._permissions = permissions

    def move_in(self, row: FileRow, source: Path) -> None:
        """Give a path the file `source`, which lies on the same file system and is gone then.

        Raises EnvspecError `repair-impossible`.
        """
        target = self._clear(row.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if target.lstat().st_ino == source.lstat().st_ino:
                target.unlink()  # rename does nothing between two names of one file
        source.replace(target)
        self.set_permissions(row)

    def write(self, row: FileRow, text: str) -> None:
        """Give a path a file with this text. Raises EnvspecError `repair-impossible`."""
        write_synced(self._clear(row.path), text.encode())
        self.set_permissions(row)

    def make_own(self, row: FileRow) -> None:
        """Put a copy that belongs to this user in the place of a file. Raises EnvspecError `repair-impossible`."""
        path = self._clear(row.path)
        copy = path.with_name(f".{path.name}.own")
        with contextlib.suppress(FileNotFoundError):
            copy.unlink()
        shutil.copy2(path, copy, follow_symlinks=False)
        copy.replace(path)
        self.set_permissions(row)

    def set_permissions(self, row: FileRow) -> None:
        """Give a file the permissions of the day of publishing; a link has none."""
        path = self._venv / row.path
        info = path.lstat()
        mode = self._permissions.get(row.path, 0o755 if row.executable else 0o644)
        if stat.S_ISREG(info.st_mode) and stat.S_IMODE(info.st_mode) != mode:
            path.chmod(mode)

    def remove(self, paths: Iterable[str], directory: str) -> None:
        """Remove files, and then their directories and `directory` where they hold nothing any more, byte code aside."""
        directories = {self._venv / directory}
        for path in paths:
            at = self._venv / path
            if self._is_inside(at):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                    at.unlink()
                directories.add(at.parent)
        for left in sorted(directories, key=lambda d: -len(d.parts)):
            self._remove_empty(left)

    def _remove_empty(self, directory: Path) -> None:
        while directory != self._venv and directory.is_relative_to(self._venv) and self._is_inside(directory):
            try:
                if names_in(directory) == (BYTECODE,):
                    remove_tree(directory / BYTECODE)
                directory.rmdir()
            except OSError:
                return
            directory = directory.parent

    def _is_inside(self, path: Path) -> bool:
        """Tell whether a path lies in the venv also when every link on the way to it is followed."""
        return Path(os.path.realpath(path.parent)).is_relative_to(self._real)

    def _clear(self, path: str) -> Path:
        """Make sure that nothing but a file or link stands at a path, and that no link on the way to it leads out."""
        target = self._venv / path
        if not self._is_inside(target):
            # A directory of the venv was replaced by a link: it is made a directory again.
            for parent in reversed(target.relative_to(self._venv).parents[:-1]):
                at = self._venv / parent
                if at.is_symlink() and not self._is_inside(at / "x"):
                    at.unlink()
                    break
        if target.is_dir() and not target.is_symlink():
            raise EnvspecError(
                "repair-impossible",
                f"{target} is a directory that envspec did not make",
                where=str(self._venv),
                fix="move it away and repair again",
            )
        return target
