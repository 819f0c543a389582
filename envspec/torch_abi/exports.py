"""What each torch release exports, and so which release a compiled extension fits.

The data is in envspec/data/torch_exports (see export_table.py). It covers the wheels of the public index,
where the aarch64 builds up to 2.10 have no CUDA. Builds of other indexes (other CUDA versions of one release)
are taken to export the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property, lru_cache
from importlib.resources import files

import msgspec
from packaging.version import InvalidVersion, Version

from envspec.torch_abi.export_table import Table, TorchBuild, decode, name_hash
from envspec.torch_abi.names import is_stable_name, torch_names


class UnknownTorch(LookupError):
    """There is no data for this release of torch on this machine."""


class TorchExports:
    """Answers which releases of torch export which names.

    `machine` is "x86_64" or "aarch64". Releases may have a local label (`2.11.0+cu130`), which does not count. Names are
    mangled, as in .dynsym.
    """

    def __init__(self, builds: tuple[TorchBuild, ...], table: Table) -> None:
        self.builds = builds
        self._table = table

    def releases(self, machine: str) -> tuple[str, ...]:
        """Return the known releases for `machine`, oldest first."""
        return tuple(build.release for build in self.builds if build.machine == machine)

    def nearest(self, release: str, machine: str) -> str | None:
        """Return the release if it is known; else the nearest known patch of the same minor, an older one first.

        None if no release of that minor is known: torch's C++ ABI holds within a minor at best.
        """
        try:
            wanted = Version(release)
        except InvalidVersion:
            return None
        siblings = [v for v in map(Version, self.releases(machine)) if v.release[:2] == wanted.release[:2]]
        older = [v for v in siblings if v <= Version(wanted.public)]
        if older:
            return str(max(older))
        return str(min(siblings)) if siblings else None

    def missing(self, names: Iterable[bytes], release: str, machine: str) -> tuple[bytes, ...]:
        """Return the names that only torch can define and that this release does not export, sorted.

        `names` are the strongly undefined names of an extension, less what its own package defines. For a
        build without CUDA, a name that the same release exports on another machine with CUDA is not counted:
        a CUDA build from elsewhere has it. Raises UnknownTorch.
        """
        has = self._offering(release, machine)
        return tuple(sorted(name for name, mask in self._own(names) if not mask & has))

    def releases_exporting(self, name: bytes, machine: str) -> tuple[str, ...]:
        """Return the known releases that export `name` on `machine`, oldest first.

        For builds without CUDA the same release's CUDA builds count too, as in `missing`.
        """
        mask = self._mask(name)
        return tuple(r for r in self.releases(machine) if mask & self._offering(r, machine))

    def fitting_releases(self, names: Iterable[bytes], machine: str) -> tuple[str, ...]:
        """Return the known releases of which `names` miss nothing, oldest first."""
        masks = [mask for _, mask in self._own(names)]
        return tuple(
            release
            for release in self.releases(machine)
            if all(mask & self._offering(release, machine) for mask in masks)
        )

    def is_stable_only(self, names: Iterable[bytes]) -> bool:
        """Tell whether an extension with these undefined names keeps to torch's stable C ABI.

        It is then not tied to one release, but fits all from a certain one on (`fitting_releases`). Also true
        of names among which none is torch's.
        """
        return all(is_stable_name(name) for name, _ in self._own(names))

    def _own(self, names: Iterable[bytes]) -> list[tuple[bytes, int]]:
        """Those of `names` that only torch can define, with their masks.

        `torch_` alone is a weak sign: other packages name C functions so. It needs a release that exports it.
        """
        found = [(name, self._mask(name)) for name in torch_names(names)]
        return [(name, mask) for name, mask in found if mask or not name.startswith(b"torch_")]

    def _mask(self, name: bytes) -> int:
        """Bit i is set if the i-th build exports `name`."""
        hashes = self._table.hashes
        value = name_hash(name)
        at = bisect_left(hashes, value)
        if at == len(hashes) or hashes[at] != value:
            return 0
        return self._table.masks[self._table.numbers[at]]

    def _number(self, release: str, machine: str) -> int:
        try:
            return self._numbers[release.partition("+")[0], machine]
        except KeyError:
            raise UnknownTorch(f"torch {release} for {machine}") from None

    def _offering(self, release: str, machine: str) -> int:
        """The bits of the builds that tell what `release` offers on `machine`."""
        number = self._number(release, machine)
        has = 1 << number
        if not self.builds[number].cuda:
            for other, build in enumerate(self.builds):
                if build.release == self.builds[number].release and build.cuda:
                    has |= 1 << other
        return has

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], int]:
        return {(build.release, build.machine): number for number, build in enumerate(self.builds)}


class _Releases(msgspec.Struct, frozen=True):
    version: int
    builds: tuple[TorchBuild, ...]


@lru_cache(maxsize=1)
def load() -> TorchExports:
    """Return the table that comes with envspec."""
    folder = files("envspec") / "data" / "torch_exports"
    known = msgspec.json.decode((folder / "releases.json").read_bytes(), type=_Releases)
    return TorchExports(known.builds, decode((folder / "exports.bin").read_bytes()))
