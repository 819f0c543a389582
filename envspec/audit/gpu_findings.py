"""Package by package: which GPU code there is, and what it does on the profile's GPU."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

import msgspec
from packaging.version import Version

from envspec.audit.binaries import VenvFiles
from envspec.audit.fatbin import GpuCode, Module, read_cubin, read_modules
from envspec.audit.gpu_support import NOTHING, Mode, Support, best_support
from envspec.data import load_table
from envspec.data.architectures import Arch
from envspec.data.compatibility import cuda_of_driver, driver_of_cuda
from envspec.data.jit_variables import consumers
from envspec.elf import ElfError
from envspec.report.findings import Finding, error, note, warning
from envspec.venv.owners import Owners

_SOURCE = re.compile(r"\.cuh?(?:\.jinja|\.in)?\Z")
_SHOWN = 12


class FeatureRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Says what goes missing where some files have no code for a GPU."""

    package: str
    files: tuple[str, ...]
    feature: str
    instead: str
    source: str
    as_of: str


class PackedRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes a library whose GPU code cannot be listed."""

    library: str
    why: str
    source: str
    as_of: str


class PtxRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Holds the CUDA release that introduced a PTX version."""

    ptx: str
    cuda: str
    source: str
    as_of: str


@dataclass(frozen=True)
class FileCode:
    """Holds the GPU code of one file (or of all cubins in a directory), as modules; a cubin is a module of its own."""

    name: str
    modules: tuple[Module, ...]

    def supports(self, gpu: Arch) -> Counter[Support]:
        """Count how many modules run how."""
        judged = {module: best_support(module, gpu) for module in set(self.modules)}
        idle = self._idle(judged)
        return Counter(NOTHING if _only_gpu(module) in idle else judged[module] for module in self.modules)

    def _idle(self, judged: Mapping[Module, Support]) -> set[tuple[int, int] | None]:
        """Find the GPUs whose own modules are not used: as many modules are for this GPU alone, and the library picks by GPU."""
        single = Counter(gpus for module in self.modules if (gpus := _only_gpu(module)))
        own = {
            gpus
            for module, support in judged.items()
            if (gpus := _only_gpu(module)) and support.mode is Mode.NATIVE
        }
        number = sum(single[gpus] for gpus in own)
        return {gpus for gpus, count in single.items() if gpus not in own and count <= number}


@dataclass(frozen=True)
class GpuInventory:
    """Holds all GPU code of a venv, and the CUDA sources that are compiled on the machine, by owner."""

    files: tuple[FileCode, ...]
    sources: tuple[str, ...] = ()
    damaged: tuple[tuple[str, str], ...] = field(default=())


def read_gpu_inventory(venv: VenvFiles, prefix: str) -> GpuInventory:
    """List the GPU code of every library and cubin. `prefix` is site-packages' place below the venv."""
    files = []
    damaged = []
    for binary in venv.binaries:
        try:
            modules = read_modules(binary.path)
        except ElfError as problem:
            damaged.append((binary.name, problem.reason))
            continue
        if modules:
            files.append(FileCode(binary.name, modules))
    cubins: dict[str, list[Module]] = {}
    sources: list[str] = []
    for name in venv.names:
        if name.endswith(".cubin"):
            code = read_cubin(f"{venv.root}/{name}")
            if code is not None:
                top = name.removeprefix(prefix + "/").split("/", 1)[0]
                cubins.setdefault(f"{prefix}/{top}", []).append((code,))
        elif _SOURCE.search(name):
            sources.append(name)
    files += [FileCode(name, tuple(modules)) for name, modules in sorted(cubins.items())]
    return GpuInventory(tuple(sorted(files, key=lambda f: f.name)), tuple(sources), tuple(damaged))


class GpuFindings:
    """Turns the GPU code of a venv into findings for one GPU and one driver."""

    def __init__(self, code: GpuInventory, owners: Owners, gpu: Arch, minimum_driver: str) -> None:
        self.code = code
        self.owners = owners
        self.gpu = gpu
        self.driver = minimum_driver

    def all(self) -> Iterator[Finding]:
        """Make every finding."""
        for name, reason in self.code.damaged:
            yield error(
                "gpu-code-damaged", name, f"the GPU code of {self._short(name)} cannot be listed: {reason}"
            )
        packages: dict[str, list[FileCode]] = {}
        for file in self.code.files:
            packages.setdefault(self._owner(file), []).append(file)
        for owner, files in sorted(packages.items()):
            yield from self._package(owner, files)
        yield from self._from_source()

    def _owner(self, file: FileCode) -> str:
        name = file.name
        if not name.rpartition("/")[2].count("."):  # a directory of cubins
            return self.owners.of_directory(name)
        return self.owners.of(name)

    def _package(self, owner: str, files: list[FileCode]) -> Iterator[Finding]:
        packed = {f.name: row for f in files if (row := packed_row(f.name.rpartition("/")[2]))}
        judged = {f.name: f.supports(self.gpu) for f in files if f.name not in packed}
        lines = [self._line(f, judged[f.name]) for f in files if f.name in judged]
        lines += [f"{self._short(name)}: not listed: {reason.why}" for name, reason in packed.items()]
        without = [f for f in files if f.name in judged and set(_modes(judged[f.name])) == {Mode.NONE}]
        missing = sorted({row for f in without for row in self._features(f)}, key=lambda row: row.feature)
        evidence = [f"missing on {self.gpu.sm}: {row.feature}; {row.instead}" for row in missing]
        evidence += lines[:_SHOWN]
        if len(lines) > _SHOWN:
            evidence.append(f"and {len(lines) - _SHOWN} more files")
        modes = Counter[Mode]()
        for counted in judged.values():
            modes.update(_modes(counted))
        what = _summary(modes) if modes else "its code cannot be listed"
        message = f"{owner or 'files of no package'} on {self.gpu.sm}: {what}"
        package = owner.partition(" ")[0] or "no package"
        unexplained = [f for f in without if not self._features(f)]
        if unexplained and len(unexplained) == len(judged):
            yield warning("gpu-code-none", package, message, evidence=evidence)
        else:
            yield note("gpu-code", package, message, evidence=evidence)
        yield from self._ptx(package, judged)

    def _line(self, file: FileCode, counted: Counter[Support]) -> str:
        codes = {code for module in file.modules for code in module}
        sass = _numbers(code.arch for code in codes if code.ptx is None)
        ptx = _numbers(code.arch for code in codes if code.ptx is not None)
        parts = [f"SASS {sass or 'none'}", f"PTX {ptx or 'none'}"]
        return f"{self._short(file.name)}: {', '.join(parts)}: {self._ways(counted)}"

    def _ways(self, counted: Counter[Support]) -> str:
        """Say how the modules of a file run; those for other GPUs do not count where some are for this one."""
        ways: Counter[str] = Counter()
        for support, number in counted.items():
            ways[self._way(support)] += number
        idle = ways.pop(Mode.NONE.value, 0)
        total = ways.total()
        if not total:
            return Mode.NONE.value
        text = ", ".join(
            way if len(ways) == 1 else f"{way} in {number} of {total} modules"
            for way, number in sorted(ways.items(), key=lambda item: (-item[1], item[0]))
        )
        return f"{text}; {_others(idle)}" if idle else text

    def _way(self, support: Support) -> str:
        code = support.code
        if code is None or support.mode is Mode.NATIVE:
            return support.mode.value
        if code.ptx is None:
            return f"{support.mode.value}: {support.why}"
        cuda = cuda_of_ptx(code.ptx)
        written = f" of CUDA {cuda}" if cuda else f" of version {code.ptx[0]}.{code.ptx[1]}"
        return f"{support.mode.value}: {support.why}{written}"

    def _ptx(self, package: str, judged: Mapping[str, Counter[Support]]) -> Iterator[Finding]:
        """Warn of PTX that is newer than the driver, which has to compile it."""
        has = cuda_of_driver(self.driver) if self.driver else None
        rows: dict[str, list[str]] = {}
        for name, counted in judged.items():
            for support in counted:
                if support.mode is not Mode.PTX or support.code is None or support.code.ptx is None:
                    continue
                cuda = cuda_of_ptx(support.code.ptx)
                if cuda is None or has is None or Version(cuda) > Version(has):
                    rows.setdefault(cuda or "", []).append(self._short(name))
        for cuda, names in sorted(rows.items()):
            needed = driver_of_cuda(cuda) if cuda else None
            if not cuda or has is None:
                yield note(
                    "gpu-code-ptx",
                    package,
                    f"{package}: whether the driver compiles its PTX is unknown",
                    evidence=sorted(set(names)),
                )
            else:
                yield warning(
                    "gpu-code-ptx",
                    package,
                    f"{package}: PTX of CUDA {cuda}, which driver {self.driver} (CUDA {has}) does not compile",
                    evidence=sorted(set(names)),
                    fix=f"run a driver of {needed} or newer" if needed else f"run a driver for CUDA {cuda}",
                )

    def _from_source(self) -> Iterator[Finding]:
        """Name the packages that compile kernels on the machine: they have no code to look for."""
        names: dict[str, set[str]] = {}
        for row in consumers():
            if self.owners.version(row.package):
                names.setdefault(row.package, set()).add(row.consumer)
        for package, who in sorted(names.items()):
            number = sum(self.owners.owns(package, name) for name in self.code.sources)
            evidence = [f"{number} CUDA source files"] if number else []
            yield note(
                "gpu-code-source",
                package,
                f"{package} {self.owners.version(package)} ({', '.join(sorted(who))}) compiles kernels for "
                f"{self.gpu.sm} on this machine when they are first used",
                evidence=evidence,
            )

    def _features(self, file: FileCode) -> tuple[FeatureRow, ...]:
        short = self._short(file.name)
        return tuple(
            row
            for row in load_features()
            if any(fnmatchcase(short, p) or fnmatchcase(short + "/", p) for p in row.files)
        )

    def _short(self, name: str) -> str:
        return name.removeprefix(self.owners.prefix)


@cache
def load_features() -> tuple[FeatureRow, ...]:
    """Read all rows."""
    return load_table("gpu_features", FeatureRow)


@cache
def packed_row(library: str) -> PackedRow | None:
    """Find the row for a library whose code cannot be listed."""
    rows = load_table("packed_gpu_code", PackedRow)
    return next((row for row in rows if re.fullmatch(row.library, library)), None)


@cache
def cuda_of_ptx(isa: tuple[int, int]) -> str | None:
    """Return the CUDA release that writes a PTX version; None for one that envspec does not know."""
    wanted = f"{isa[0]}.{isa[1]}"
    return next((row.cuda for row in load_table("ptx_isa", PtxRow) if row.ptx == wanted), None)


def _only_gpu(module: Module) -> tuple[int, int] | None:
    """Return the one GPU that all code of a module is for, as its compute capability; None if there are several."""
    gpus = {(code.arch.major, code.arch.minor) for code in module}
    return gpus.pop() if len(gpus) == 1 else None


def _modes(counted: Counter[Support]) -> Counter[Mode]:
    found: Counter[Mode] = Counter()
    for support, number in counted.items():
        found[support.mode] += number
    return found


def _summary(modes: Counter[Mode]) -> str:
    used = [mode for mode in Mode if modes[mode] and mode is not Mode.NONE]
    return ", ".join(mode.value for mode in used) or Mode.NONE.value


def _others(number: int) -> str:
    return f"{number} module{' is' if number == 1 else 's are'} for other GPUs"


def _numbers(archs: Iterable[Arch]) -> str:
    ordered = sorted(set(archs), key=lambda a: (a.major, a.minor, a.variant))
    return " ".join(arch.number for arch in ordered)


__all__ = ["FileCode", "GpuCode", "GpuFindings", "GpuInventory", "cuda_of_ptx", "read_gpu_inventory"]
