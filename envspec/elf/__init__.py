"""envspec's own reader of ELF files: what a shared library offers, wants and is.

It exists because the readers in the field build an object for each symbol and take seconds for one of torch's
libraries; this one decodes tables in columns and takes milliseconds (benchmarks/elf_read.py). It trusts
nothing in the file: every failure is an `ElfError`.
"""

from __future__ import annotations

from envspec.elf.demangle import demangle
from envspec.elf.errors import ElfError, ElfIdentity, ElfIncomplete, ElfUnsupported
from envspec.elf.headers import Section
from envspec.elf.reader import is_elf, read, read_prefix, read_sections
from envspec.elf.symbols import Defined, SymbolTable, Undefined
from envspec.elf.value import Dynamic, Elf
from envspec.elf.versions import VersionDefinition, VersionNeed

__all__ = [
    "Defined",
    "Dynamic",
    "Elf",
    "ElfError",
    "ElfIdentity",
    "ElfIncomplete",
    "ElfUnsupported",
    "Section",
    "SymbolTable",
    "Undefined",
    "VersionDefinition",
    "VersionNeed",
    "demangle",
    "is_elf",
    "read",
    "read_prefix",
    "read_sections",
]
