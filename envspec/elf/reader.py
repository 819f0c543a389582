"""Reading an ELF file into an `Elf`.

The tables are found the way the loader finds them, through PT_DYNAMIC, because that is what decides at run
time; section headers only tell how many symbols there are, and where the symbols of a file without program
headers stand. Not read: relocations as such, .symtab, debug information, code.
"""

from __future__ import annotations

import os

from envspec.elf import headers as h
from envspec.elf import prefix
from envspec.elf.errors import ElfError, ElfIncomplete
from envspec.elf.hashes import count_by_gnu_hash, count_by_sysv_hash
from envspec.elf.headers import FileHeader, Section, Segment
from envspec.elf.source import FileSource, PrefixSource, Source
from envspec.elf.symbols import MAX_SYMBOLS, SYMBOL_SIZE, SymbolTable, little_endian
from envspec.elf.value import Dynamic, Elf
from envspec.elf.versions import VersionDefinition, VersionNeed, read_definitions, read_needs

# Tables from here on are worth a look-up by hash.
_LARGE_TABLE = 4096


def read(path: str | os.PathLike[str]) -> Elf:
    """Read the file at `path`. Raises ElfError; see there for the codes."""
    with FileSource(path) as source:
        return _read(source)


def read_prefix(data: bytes, file_size: int) -> Elf:
    """Read a file of `file_size` bytes of which the first `len(data)` are given.

    Where they hold the symbols but not .dynamic, the result is `partial`. Raises ElfIncomplete, with the
    length to try next, if they do not hold the symbols; ElfError if more bytes would not help.
    """
    source = PrefixSource(data, file_size)
    try:
        return _read(source)
    except ElfIncomplete as incomplete:
        found = prefix.find_symbols(data)
        if found is None:
            raise
        header = h.read_header(source)
        segments = h.read_segments(source, header)
        return Elf(
            header.identity,
            _interpreter(source, segments),
            found.table,
            None,
            partial=True,
            unclaimed=found.unclaimed,
            need=incomplete.need,
        )


def read_sections(path: str | os.PathLike[str]) -> tuple[Section, ...]:
    """Return the section headers of the file at `path`, the empty first one included. Raises ElfError."""
    with FileSource(path) as source:
        return h.read_sections(source, h.read_header(source))


def is_elf(path: str | os.PathLike[str]) -> bool:
    """Tell whether the file at `path` is a regular file with the ELF magic; False also if it cannot be read."""
    try:
        with FileSource(path) as source:
            return source.size >= 4 and source.read(0, 4, "the magic") == b"\x7fELF"
    except ElfError:
        return False


def _read(source: Source) -> Elf:
    header = h.read_header(source)
    segments = h.read_segments(source, header)
    entries = h.read_dynamic(source, segments)
    if entries is None:
        none = SymbolTable(b"", b"")
        return Elf(header.identity, _interpreter(source, segments), none, None)
    strings = b""
    if h.DT_STRTAB in entries:
        at = h.file_offset(segments, entries[h.DT_STRTAB][0], ".dynstr")
        strings = source.read(at, _value(entries, h.DT_STRSZ), ".dynstr")
    table, dynamic = _tables(source, header, segments, entries, strings)
    return Elf(
        header.identity,
        _interpreter(source, segments),
        table,
        dynamic,
        size=source.size,
        mapped=max((s.offset + s.file_size for s in segments if s.type == h.PT_LOAD), default=0),
    )


def _tables(
    source: Source,
    header: FileHeader,
    segments: tuple[Segment, ...],
    entries: dict[int, list[int]],
    strings: bytes,
) -> tuple[SymbolTable, Dynamic]:
    needs: tuple[VersionNeed, ...] = ()
    definitions: tuple[VersionDefinition, ...] = ()
    if h.DT_VERNEED in entries:
        at = h.file_offset(segments, entries[h.DT_VERNEED][0], ".gnu.version_r")
        needs = read_needs(source, at, _value(entries, h.DT_VERNEEDNUM), strings)
    if h.DT_VERDEF in entries:
        at = h.file_offset(segments, entries[h.DT_VERDEF][0], ".gnu.version_d")
        definitions = read_definitions(source, at, _value(entries, h.DT_VERDEFNUM), strings)
    symbols = indices = b""
    if h.DT_SYMTAB in entries:
        at = h.file_offset(segments, entries[h.DT_SYMTAB][0], ".dynsym")
        count = _count(source, header, segments, entries, at)
        symbols = source.read(at, count * SYMBOL_SIZE, ".dynsym")
        if h.DT_VERSYM in entries:
            place = h.file_offset(segments, entries[h.DT_VERSYM][0], ".gnu.version")
            indices = source.read(place, 2 * count, ".gnu.version")
    hashes = b""
    if h.DT_GNU_HASH in entries and len(symbols) >= _LARGE_TABLE * SYMBOL_SIZE:
        at = h.file_offset(segments, entries[h.DT_GNU_HASH][0], ".gnu.hash")
        end = count_by_gnu_hash(source, at)[1]
        hashes = source.read(at, end - at, ".gnu.hash")
    table = SymbolTable(
        symbols,
        strings,
        indices,
        {need.number: (need.version, need.file) for need in needs},
        {definition.number: definition.version for definition in definitions if not definition.base},
        hashes,
    )
    dynamic = Dynamic(
        soname=_text(strings, entries.get(h.DT_SONAME, [])[:1]),
        needed=tuple(_text(strings, [offset]) for offset in entries.get(h.DT_NEEDED, ())),
        rpath=_path(strings, entries.get(h.DT_RPATH, [])),
        runpath=_path(strings, entries.get(h.DT_RUNPATH, [])),
        version_needs=needs,
        version_definitions=definitions,
    )
    return table, dynamic


def _count(
    source: Source,
    header: FileHeader,
    segments: tuple[Segment, ...],
    entries: dict[int, list[int]],
    symtab: int,
) -> int:
    """The number of entries of .dynsym, which stands at file offset `symtab`."""
    count = None
    try:
        size = h.find_dynsym_size(source, header, symtab)
        count = None if size is None else size // SYMBOL_SIZE
    except ElfError:  # broken or absent section headers are no fault: the loader does not look at them
        pass
    if count is None and h.DT_HASH in entries:
        count = count_by_sysv_hash(source, h.file_offset(segments, entries[h.DT_HASH][0], ".hash"))
    if count is None and h.DT_GNU_HASH in entries:
        at = h.file_offset(segments, entries[h.DT_GNU_HASH][0], ".gnu.hash")
        count = count_by_gnu_hash(source, at)[0] or None
    if count is None:
        count = _count_by_relocations(source, segments, entries)
    if count > MAX_SYMBOLS:
        raise ElfError("elf-too-large", f".dynsym claims {count} symbols")
    return count


def _count_by_relocations(
    source: Source, segments: tuple[Segment, ...], entries: dict[int, list[int]]
) -> int:
    """One more than the largest symbol that a relocation refers to.

    The last resort, for files that export nothing: a symbol that no relocation uses is never looked up, so
    none that matters is left out.
    """
    largest = 0
    for start, size in ((h.DT_RELA, h.DT_RELASZ), (h.DT_JMPREL, h.DT_PLTRELSZ)):
        if start in entries:
            at = h.file_offset(segments, entries[start][0], "a relocation table")
            length = _value(entries, size) // 24 * 24
            words = little_endian("I", source.read(at, length, "a relocation table"))
            largest = max(largest, max(words[3::6], default=0))
    return largest + 1


def _value(entries: dict[int, list[int]], tag: int) -> int:
    return entries.get(tag, [0])[0]


def _text(strings: bytes, offsets: list[int]) -> str:
    return os.fsdecode(h.c_string(strings, offsets[0])) if offsets else ""


def _path(strings: bytes, offsets: list[int]) -> tuple[str, ...]:
    text = _text(strings, offsets[:1])
    return tuple(text.split(":")) if text else ()


def _interpreter(source: Source, segments: tuple[Segment, ...]) -> str:
    for segment in segments:
        if segment.type == h.PT_INTERP and 0 < segment.file_size <= 4096:
            text = source.read(segment.offset, segment.file_size, "the interpreter")
            return os.fsdecode(text.rstrip(b"\0"))
    return ""
