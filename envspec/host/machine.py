"""What doctor sees of a machine. Everything is read below one root, so that a test's machine is a directory of real files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from envspec.host.nvml import NvmlGpu

_MOST = 4 << 20
_LINKS = 40
NETWORK_TYPES = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p"),
        *("lustre", "gpfs", "beegfs", "ceph", "glusterfs", "orangefs", "pvfs2", "panfs", "wekafs"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"),
    )
)


class Mount(msgspec.Struct, frozen=True):
    """Describes the mounted file system that contains a path."""

    point: str
    type: str
    options: frozenset[str]

    @property
    def over_network(self) -> bool:
        """Tell whether this is a file system of another machine: slow for compilers, and file locks on it often do not work."""
        return self.type in NETWORK_TYPES


class Space(msgspec.Struct, frozen=True):
    """Says how many bytes a file system has, and how many are free."""

    free: int
    total: int


class Host:
    """Reads facts about the machine that envspec runs on. It changes nothing."""

    def __init__(self, root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.environ: Mapping[str, str] = os.environ if environ is None else environ

    def at(self, path: str) -> Path:
        """Return where an absolute path of this host lies."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        """Return the beginning of a file, or None if it cannot be read."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace")

    def data(self, path: str) -> bytes | None:
        """Return the beginning of a file in bytes, or None if it cannot be read."""
        try:
            with self.at(self.real(path)).open("rb") as file:
                return file.read(_MOST)
        except (OSError, ValueError):
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted; none if it cannot be read."""
        try:
            return tuple(sorted(entry.name for entry in os.scandir(self.at(self.real(path)))))
        except (OSError, ValueError):
            return ()

    def real(self, path: str) -> str:
        """Return the path with its links followed, as far as it exists; links lead below the root, as in a chroot."""
        left = [part for part in path.split("/") if part not in ("", ".")][::-1]
        done: list[str] = []
        links = 0
        while left:
            part = left.pop()
            if part == "..":
                done = done[:-1]
                continue
            here = self.at("/".join([*done, part]))
            try:
                target = str(here.readlink())
            except (OSError, ValueError):
                done.append(part)
                continue
            links += 1
            if links > _LINKS:
                return path
            if target.startswith("/"):
                done = []
            left += [piece for piece in target.split("/") if piece not in ("", ".")][::-1]
        return "/" + "/".join(done)

    def exists(self, path: str) -> bool:
        """Tell whether something is there; a dangling link leads to nothing."""
        try:
            return self.at(self.real(path)).exists()
        except (OSError, ValueError):
            return False

    def is_dir(self, path: str) -> bool:
        """Tell whether this is a directory, or a link to one."""
        try:
            return self.at(self.real(path)).is_dir()
        except (OSError, ValueError):
            return False

    def is_link(self, path: str) -> bool:
        """Tell whether this is a link, wherever it leads."""
        try:
            return self.at(path).is_symlink()
        except (OSError, ValueError):
            return False

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if there is none."""
        try:
            return self.at(self.real(path)).stat().st_size
        except (OSError, ValueError):
            return None

    def writable(self, path: str) -> bool:
        """Tell whether this process may write there."""
        try:
            return os.access(self.at(self.real(path)), os.W_OK)
        except (OSError, ValueError):
            return False

    def space(self, path: str) -> Space | None:
        """Return the space of the file system that holds a path, for which the path itself need not exist."""
        try:
            found = os.statvfs(self.at(self.nearest(path)))
        except (OSError, ValueError):
            return None
        return Space(free=found.f_bavail * found.f_frsize, total=found.f_blocks * found.f_frsize)

    def nearest(self, path: str) -> str:
        """Return the path, or the nearest directory above it that exists."""
        here = self.real(path)
        while here != "/" and not self.exists(here):
            here = here.rpartition("/")[0] or "/"
        return here

    def mount(self, path: str) -> Mount | None:
        """Return the mount that holds a path, by the kernel's table."""
        real = self.nearest(path)
        best: Mount | None = None
        for line in (self.text("/proc/self/mounts") or "").splitlines():
            fields = line.split(" ")
            if len(fields) < 4:
                continue
            point = _unescaped(fields[1])
            inside = real == point or real.startswith(point.rstrip("/") + "/")
            if inside and (best is None or len(point) >= len(best.point)):
                best = Mount(point, fields[2], frozenset(fields[3].split(",")))
        return best

    def which(self, name: str) -> str | None:
        """Return the first program of a name on PATH, or None."""
        return next(self.all_on_path(name), None)

    def all_on_path(self, name: str) -> Iterator[str]:
        """Yield every program of a name on PATH, in order; a name with a slash is a path.

        Relative elements of PATH are passed over.
        """
        if "/" in name:
            path = name if name.startswith("/") else f"{Path.cwd()}/{name}"
            if self.executable(path):
                yield path
            return
        for element in self.environ.get("PATH", "").split(":"):
            path = f"{element.rstrip('/')}/{name}"
            if element.startswith("/") and self.executable(path):
                yield path

    def executable(self, path: str) -> bool:
        """Tell whether this is a file that this process may run."""
        at = self.at(self.real(path))
        try:
            return at.is_file() and os.access(at, os.X_OK)
        except (OSError, ValueError):
            return False

    def elements(self, variable: str) -> list[str]:
        """Return the elements of a list variable, empty ones too; nothing if it is unset or empty."""
        value = self.environ.get(variable, "")
        return value.split(":") if value else []

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match, sorted."""
        try:
            found = sorted(self.root.glob(pattern.lstrip("/")))
        except (OSError, ValueError):
            return []
        return ["/" + str(path.relative_to(self.root)) for path in found]

    def nvml(self) -> tuple[NvmlGpu, ...] | None:
        """Return the GPUs as the driver's own library tells them, or None if it or nvidia-ml-py is not there."""
        from envspec.host.nvml import gpus

        return gpus()

    def available_memory(self) -> int | None:
        """Return how many bytes of memory a process may still take, or None if the kernel does not tell."""
        from envspec.host.memory import HostFiles, available_memory

        files = msgspec.structs.asdict(HostFiles())
        return available_memory(HostFiles(**{name: str(self.at(path)) for name, path in files.items()}))

    def processors(self) -> int:
        """Return how many processors this process may use."""
        return len(os.sched_getaffinity(0))


def _unescaped(field: str) -> str:
    """Undo the octal escapes as which the kernel writes blanks in its tables."""
    for escape, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escape, letter)
    return field
