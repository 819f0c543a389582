"""The frozen values of a profile. They know nothing of TOML, files or uv."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from envspec.data.architectures import Arch


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the GPU that kernels are compiled for. `minimum_driver` is a Linux driver version such as `580.65.06`."""

    arch: Arch
    minimum_driver: str


class PythonRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`versions` is a PEP 440 specifier over Python versions, `prefer` a minor such as `3.12` inside it."""

    versions: str
    prefer: str
    minors: tuple[str, ...]
    """Every minor the range admits, ascending: the lock has to serve all of them."""


class CudaRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one CUDA toolkit release, named as its metapackage `cuda-toolkit` names it, and the parts wanted of it."""

    toolkit: str
    components: tuple[str, ...]


class PackageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one package. `specifier` is PEP 440 without local label; empty means any version."""

    name: str
    specifier: str
    local: str = ""
    """The local version label of an exact pin (`cu130`): a claim that the lock stage verifies."""
    extras: tuple[str, ...] = ()
    index: str = ""

    @property
    def requirement(self) -> str:
        """Return the requirement as PEP 508 writes it."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.specifier}"


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a version that wins over what packages ask for; the user has to say why."""

    name: str
    specifier: str
    reason: str


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a package index. `flat` indexes are directories or pages of wheels; `explicit` ones serve only who names them."""

    name: str
    url: str
    default: bool = False
    explicit: bool = False
    flat: bool = False


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Describes an environment as its user asks for it.

    `path` is where it was read from, `sources` every file that took part (`extends`).
    """

    name: str
    path: Path
    sources: tuple[Path, ...]
    gpu: Gpu
    python: PythonRequest
    cuda: CudaRequest | None
    packages: tuple[PackageRequest, ...]
    overrides: tuple[Override, ...]
    indexes: tuple[Index, ...]
    machines: tuple[str, ...]
    exclude_newer: str
    """RFC 3339 in UTC, or empty: only files uploaded before it exist for the resolver."""
    allow_sdists: tuple[str, ...]
    precedence: tuple[str, ...]
    """Packages whose files take precedence where two packages own one path; later ones over earlier ones."""
    memory_per_job: int
    """Bytes of memory that one compiler process is given when MAX_JOBS is chosen."""
    memory_headroom: int
    """Bytes of memory that compile jobs leave free."""
    environment: tuple[tuple[str, str], ...]
    old_keys: tuple[tuple[str, str], ...] = ()
    """(old name, name of today) of the keys that the files spell as older releases did: what they say is in force."""

    def names(self, package: str) -> bool:
        """Return whether the profile itself asks for a package."""
        return any(request.name == package for request in self.packages)

    @property
    def lock_path(self) -> Path:
        """Return `NAME.lock` beside the profile."""
        return self.path.with_suffix(".lock")

    @property
    def lock_digest(self) -> str:
        """Return the digest of exactly what decides the lock, with `sha256:` before it.

        The GPU, file precedence and variables do not: changing them needs no new lock.
        """
        asked = (
            self.python.versions,
            self.cuda,
            self.packages,
            self.overrides,
            [(i.name, i.default, i.explicit, i.flat) for i in self.indexes],
            self.machines,
            self.exclude_newer,
            self.allow_sdists,
        )
        return _digest(asked)

    @property
    def digest(self) -> str:
        """Return the digest of everything that the user asked for; place and format of the file do not count."""
        # The preferred interpreter is a wish about the host; everything else decides the environment.
        return _digest(
            (
                self.lock_digest,
                self.gpu,
                self.python.prefer,
                self.precedence,
                self.memory_per_job,
                self.memory_headroom,
                self.environment,
            )
        )


def _digest(value: object) -> str:
    return "sha256:" + hashlib.sha256(msgspec.json.encode(value)).hexdigest()
