"""Time envspec's ELF reader beside pyelftools on the libraries of an installed environment.

    python benchmarks/elf_read.py SITE_PACKAGES

Prints the best of several runs from the page cache: the exports of torch's libraries, then what all shared
libraries need, want and offer, and how many times longer pyelftools takes. pyelftools is timed once, and for
all libraries only on a sample. The last line says whether both read the same names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from envspec.elf import Elf, ElfError, read

RUNS = 5
SAMPLE = 10


def main() -> int:
    """Measure and print."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    site = Path(sys.argv[1])
    torch = sorted(
        path
        for path in (site / "torch" / "lib").glob("lib*.so*")
        if path.name.startswith(("libc10", "libtorch"))
    )
    everything = sorted(path for path in site.rglob("*.so*") if path.is_file() and not path.is_symlink())
    for path in everything:
        warm(path)

    count = sum(len(read(path).symbols.exports) for path in torch)
    ours = best(lambda: [read(path).symbols.exports for path in torch])
    print(f"torch: {len(torch)} libraries, {count:,} exports")
    print(f"  envspec     {ours * 1e3:9.1f} ms")
    began = time.perf_counter()
    theirs = {path: exports_by_pyelftools(path) for path in torch}
    slow = time.perf_counter() - began
    print(f"  pyelftools  {slow * 1e3:9.1f} ms   {slow / ours:.0f} times as long")

    print(f"all: {len(everything)} libraries, {sum(path.stat().st_size for path in everything) / 1e9:.2f} GB")
    for what, ask in ASKED.items():
        taken = best(partial(each, ask, everything))
        print(f"  envspec     {taken * 1e3:9.1f} ms   {what}")
    sample = everything[:: max(1, len(everything) // SAMPLE)]
    part = best(partial(each, names_of, sample))
    began = time.perf_counter()
    for path in sample:
        exports_by_pyelftools(path)
    slow = time.perf_counter() - began
    print(f"  pyelftools  {slow * 1e3:9.1f} ms   on {len(sample)} of them, {slow / part:.0f} times as long")
    same = all(read(path).symbols.exports == names for path, names in theirs.items())
    print(f"same exports of torch: {'yes' if same else 'NO'}")
    return 0 if same else 1


def each(ask: Callable[[Path], object], paths: list[Path]) -> None:
    """Ask for the same of each file, keeping nothing."""
    for path in paths:
        ask(path)


def best(run: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def warm(path: Path) -> None:
    """Bring what is read into the page cache."""
    names_of(path)


def names_of(path: Path) -> object:
    """Needed files, imported and exported names."""
    elf = try_read(path)
    return elf and (elf.needed, elf.symbols.imports, elf.symbols.weak_imports, elf.symbols.exports)


def versions_of(path: Path) -> object:
    """Needed files, imported and exported names grouped by version."""
    elf = try_read(path)
    return elf and (elf.needed, elf.symbols.imports_by_version, elf.symbols.exports_by_version)


def rows_of(path: Path) -> object:
    """Needed files and all dynamic symbols, one row each."""
    elf = try_read(path)
    return elf and (elf.needed, elf.symbols.undefined, elf.symbols.defined)


def try_read(path: Path) -> Elf | None:
    """The file, or None if it is no ELF file."""
    try:
        return read(path)
    except ElfError:
        return None


def exports_by_pyelftools(path: Path) -> frozenset[bytes]:
    """The exported names as pyelftools reads them."""
    with path.open("rb") as stream:
        try:
            section = ELFFile(stream).get_section_by_name(".dynsym")
        except Exception:  # noqa: BLE001 - linker scripts and damaged files are not the point here
            return frozenset()
        if not isinstance(section, SymbolTableSection):
            return frozenset()
        return frozenset(
            symbol.name.encode("latin-1")
            for symbol in section.iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
        )


ASKED: dict[str, Callable[[Path], object]] = {
    "needed files, imported and exported names": names_of,
    "the same, names grouped by version": versions_of,
    "the same, one row a symbol": rows_of,
}


if __name__ == "__main__":
    sys.exit(main())
