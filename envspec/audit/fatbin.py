"""The GPU code inside a file, as far as a list of it goes: nothing is decompressed, nothing is run.

A host library carries fat binaries in the section `.nv_fatbin`; those in `__nv_relfatbin` are what the device linker made
them from, and are never loaded. Each has a header (magic 0xBA55ED50)
and entries, one for every architecture it was compiled for: SASS (a cubin) or PTX. The entry's header tells the architecture,
the PTX version and, in two bits of its flags, the variants `a` and `f`; NVIDIA documents none of it. That the list is right is
shown against cuobjdump and against what nvcc was told to make, in the tests. A cubin on its own is an ELF file whose flags tell
the architecture; the variant `f` is not told there.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from envspec.data.architectures import Arch
from envspec.elf import ElfError, read_sections

_SECTION = ".nv_fatbin"
_NOBITS = 8
_MAGIC = 0xBA55ED50
_MAGIC_BYTES = _MAGIC.to_bytes(4, "little")
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_PTX, _CUBIN = 1, 2
_ARCH_SPECIFIC, _FAMILY = 1 << 20, 1 << 21
# Containers follow each other with up to this much padding between them.
_GAP = 64 << 10
_MAX_ENTRIES = 1 << 20

_CUBIN_HEADER = struct.Struct("<16sHHIQQQI")
_EM_CUDA = 190


class GpuCode(NamedTuple):
    """Holds code for one architecture. `ptx` is the PTX ISA version, None for SASS."""

    arch: Arch
    ptx: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self.arch.sm if self.ptx is None else f"compute_{self.arch.number}"


Module = tuple[GpuCode, ...]
"""The code of one fat binary: the same kernels for several architectures."""


def read_modules(path: str) -> tuple[Module, ...]:
    """List the fat binaries of a host library, in their order; empty if it has none.

    Raises ElfError: the file's own codes, or `fatbin-malformed`.
    """
    sections = [s for s in read_sections(path) if s.name == _SECTION and s.type != _NOBITS]
    if not sections:
        return ()
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found: list[Module] = []
        for section in sections:
            found += _section(handle, section.offset, section.offset + section.size)
            if len(found) > _MAX_ENTRIES:
                raise ElfError("fatbin-malformed", "more fat binaries than any real file has")
        return tuple(found)
    finally:
        os.close(handle)


def _section(handle: int, at: int, end: int) -> Iterator[Module]:
    while at + _CONTAINER.size <= end:
        magic, _, header, size = _CONTAINER.unpack(_bytes(handle, at, _CONTAINER.size))
        if magic != _MAGIC:
            step = _bytes(handle, at, min(_GAP, end - at)).find(_MAGIC_BYTES)
            if step < 0:
                return
            at += step
            continue
        if header < _CONTAINER.size or at + header + size > end:
            raise ElfError("fatbin-malformed", f"a fat binary at {at} ends behind its section")
        yield tuple(_entries(handle, at + header, at + header + size))
        at += header + size


def _entries(handle: int, at: int, end: int) -> Iterator[GpuCode]:
    while at + _ENTRY.size <= end:
        row = _ENTRY.unpack(_bytes(handle, at, _ENTRY.size))
        kind, header, size, minor, major, arch, flags = (row[i] for i in (0, 2, 3, 6, 7, 8, 11))
        if header < _ENTRY.size:
            raise ElfError("fatbin-malformed", f"an entry at {at} with a header of {header} bytes")
        variant = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY else ""
        if kind == _CUBIN:
            yield GpuCode(_arch(arch, variant))
        elif kind == _PTX:
            yield GpuCode(_arch(arch, variant), (major, minor))
        at += header + size


def _arch(number: int, variant: str) -> Arch:
    return Arch(number // 10, number % 10, variant)


def _bytes(handle: int, at: int, size: int) -> bytes:
    data = os.pread(handle, size, at)
    if len(data) != size:
        raise ElfError("elf-truncated", f"the file ends within a fat binary at {at}")
    return data


def read_cubin(path: str) -> GpuCode | None:
    """Read what a cubin on its own is for; None if the file is no cubin."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        data = os.pread(handle, _CUBIN_HEADER.size, 0)
    except OSError:
        return None
    finally:
        os.close(handle)
    if len(data) < _CUBIN_HEADER.size or data[:4] != b"\x7fELF":
        return None
    identity, _, machine, _, _, _, _, flags = _CUBIN_HEADER.unpack(data)
    if machine != _EM_CUDA:
        return None
    # Up to ABI version 7 the architecture is in the lowest byte, from 8 on in the next one.
    if identity[8] >= 8:
        return GpuCode(_arch(flags >> 8 & 0xFF, "a" if flags & 0x8 else ""))
    return GpuCode(_arch(flags & 0xFF, "a" if flags & 0x800 else ""))
