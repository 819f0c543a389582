"""The reader against pyelftools, on libraries of many shapes and on those of the system."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from envspec.elf import Defined, Elf, ElfError, ElfUnsupported, Undefined, is_elf, read, read_sections
from envspec.elf.lookup import HashTable
from tests.unit.elf.conftest import SOURCE, VERSIONED, strip_section_headers

Build = Callable[..., Path]

SYSTEM = Path("/lib/x86_64-linux-gnu")
BINDINGS = {"STB_GLOBAL": 1, "STB_WEAK": 2, "STB_LOOS": 10, "STB_GNU_UNIQUE": 10}


def by_pyelftools(path: Path) -> dict[str, Any]:
    """The same facts as `facts`, as pyelftools reads them from the section headers."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        sections = list(elf.iter_sections())
        dynsym = next(
            s for s in sections if isinstance(s, SymbolTableSection) and s["sh_type"] == "SHT_DYNSYM"
        )
        versym = next((s for s in sections if isinstance(s, GNUVerSymSection)), None)
        offered: dict[int, str] = {}
        wanted: dict[int, tuple[str, str]] = {}
        needs = []
        for section in sections:
            if isinstance(section, GNUVerDefSection):
                for definition, names in section.iter_versions():
                    if not definition["vd_flags"] & 1:
                        offered[definition["vd_ndx"]] = next(names).name
            if isinstance(section, GNUVerNeedSection):
                for need, entries in section.iter_versions():
                    for entry in entries:
                        wanted[entry["vna_other"]] = (entry.name, need.name)
                        needs.append((need.name, entry.name))
        defined, undefined = [], []
        for number, symbol in enumerate(dynsym.iter_symbols()):
            binding = symbol["st_info"]["bind"]
            if binding == "STB_LOCAL":
                continue
            said = versym.get_symbol(number)["ndx"] if versym else 1
            index = said if isinstance(said, int) else {"VER_NDX_LOCAL": 0, "VER_NDX_GLOBAL": 1}[said]
            name = symbol.name.encode("latin-1")
            if symbol["st_shndx"] == "SHN_UNDEF":
                version, file = wanted.get(index & 0x7FFF, ("", ""))
                undefined.append(Undefined(name, version, file, binding == "STB_WEAK"))
            else:
                version = offered.get(index & 0x7FFF, "")
                defined.append(Defined(name, version, index < 0x8000, BINDINGS[binding]))
        dynamic = next(s for s in sections if isinstance(s, DynamicSection))
        tags: dict[str, list[str]] = {}
        for tag in dynamic.iter_tags():
            for field in ("needed", "soname", "rpath", "runpath"):
                if hasattr(tag, field):
                    tags.setdefault(field, []).append(getattr(tag, field))
        return {
            "soname": "".join(tags.get("soname", [])),
            "needed": tuple(tags.get("needed", [])),
            "rpath": tuple(":".join(tags["rpath"]).split(":")) if "rpath" in tags else (),
            "runpath": tuple(":".join(tags["runpath"]).split(":")) if "runpath" in tags else (),
            "defined": tuple(defined),
            "undefined": tuple(undefined),
            "needs": needs,
        }


def facts(elf: Elf) -> dict[str, Any]:
    return {
        "soname": elf.soname,
        "needed": elf.needed,
        "rpath": elf.rpath,
        "runpath": elf.runpath,
        "defined": elf.symbols.defined,
        "undefined": elf.symbols.undefined,
        "needs": [(need.file, need.version) for need in elf.version_needs],
    }


SHAPES = {
    "plain": (SOURCE, "-lm"),
    "sysv hash": (SOURCE, "-lm", "-Wl,--hash-style=sysv"),
    "gnu hash": (SOURCE, "-lm", "-Wl,--hash-style=gnu"),
    "both hashes": (SOURCE, "-lm", "-Wl,--hash-style=both"),
    "soname": (SOURCE, "-Wl,-soname,libdemo.so.1"),
    "rpath": (SOURCE, "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib:/opt/x"),
    "runpath": (SOURCE, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib:/opt/x"),
    "versions": (VERSIONED, "-Wl,--version-script=demo.map"),
    "build id": (SOURCE, "-Wl,--build-id=sha1"),
    "no start files": ("int f(void) { return 1; }", "-nostdlib"),
    "gold": (SOURCE, "-fuse-ld=gold", "-lm"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_pyelftools(shape: str, compile_library: Build) -> None:
    path = compile_library(*SHAPES[shape])
    assert facts(read(path)) == by_pyelftools(path)


@pytest.mark.parametrize("shape", SHAPES)
def test_without_section_headers_the_answer_is_the_same(shape: str, compile_library: Build) -> None:
    path = compile_library(*SHAPES[shape])
    assert facts(read(strip_section_headers(path))) == by_pyelftools(path)


def test_what_a_small_library_says(compile_library: Build) -> None:
    path = compile_library(SOURCE, "-lm", "-Wl,-soname,libdemo.so.1", "-Wl,--as-needed")
    elf = read(path)
    assert (elf.machine, elf.identity.bits, elf.identity.type) == ("x86_64", 64, 3)
    assert elf.soname == "libdemo.so.1"
    assert elf.needed == ("libm.so.6",)
    assert elf.symbols.exports == {b"offered_function", b"offered_data", b"offered_weak", b"offered_pointer"}
    assert elf.symbols.imports == {b"cos", b"wanted_strong"}
    assert b"wanted_weak" in elf.symbols.weak_imports
    assert Undefined(b"cos", "GLIBC_2.2.5", "libm.so.6", False) in elf.symbols.undefined
    assert Defined(b"offered_weak", "", True, 2) in elf.symbols.defined
    assert (elf.has_dynamic, elf.partial, elf.interpreter) == (True, False, "")


def test_versions_that_a_library_defines(compile_library: Build) -> None:
    elf = read(compile_library(VERSIONED, "-Wl,--version-script=demo.map", "-nostdlib"))
    assert sorted(d for d in elf.symbols.defined if d.name in (b"f", b"g")) == [
        Defined(b"f", "DEMO_1", False, 1),
        Defined(b"f", "DEMO_2", True, 1),
        Defined(b"g", "DEMO_1", True, 1),
    ]
    assert [(d.version, d.base) for d in elf.version_definitions] == [
        ("libdemo.so.1", True),
        ("DEMO_1", False),
        ("DEMO_2", False),
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_views_of_the_symbols_agree(shape: str, compile_library: Build) -> None:
    symbols = read(compile_library(*SHAPES[shape])).symbols
    assert symbols.exports == {row.name for row in symbols.defined}
    assert symbols.imports == {row.name for row in symbols.undefined if not row.weak}
    assert symbols.weak_imports == {row.name for row in symbols.undefined if row.weak}
    offered = {(version, name) for version, names in symbols.exports_by_version.items() for name in names}
    assert offered == {(row.version, row.name) for row in symbols.defined}
    wanted = {(*key, name) for key, names in symbols.imports_by_version.items() for name in names}
    assert wanted == {(row.version, row.file, row.name) for row in symbols.undefined if not row.weak}


def test_a_file_that_exports_nothing_is_counted_by_its_relocations(compile_library: Build) -> None:
    source = 'extern int wanted(void); __attribute__((visibility("hidden"))) int (*p)(void) = wanted;'
    path = compile_library(source, "-nostdlib", "-Wl,--hash-style=gnu")
    assert read(strip_section_headers(path)).symbols.imports == {b"wanted"}


def test_an_object_file_has_no_dynamic_part(compile_library: Build) -> None:
    elf = read(compile_library("int f(void) { return 1; }", "-c", name="demo.o"))
    assert (elf.has_dynamic, elf.needed, elf.soname, len(elf.symbols)) == (False, (), "", 0)


@pytest.mark.skipif(not SYSTEM.is_dir(), reason="no Debian multiarch directory")
@pytest.mark.parametrize(
    "name", ["libc.so.6", "libm.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2", "libz.so.1"]
)
def test_agrees_on_system_libraries(name: str) -> None:
    path = next(
        (p for p in (SYSTEM / name, Path("/usr") / SYSTEM.relative_to("/") / name) if p.exists()), None
    )
    if path is None:
        pytest.skip(f"no {name} here")
    path = path.resolve()
    elf = read(path)
    assert facts(elf) == by_pyelftools(path)
    assert facts(read_copy_without_sections(path)) == facts(elf)


def read_copy_without_sections(path: Path) -> Elf:
    from envspec.elf import read_prefix

    data = bytearray(path.read_bytes())
    data[0x28:0x30] = bytes(8)
    data[0x3C:0x40] = bytes(4)
    return read_prefix(bytes(data), len(data))


def test_a_program_names_its_interpreter() -> None:
    elf = read(Path(sys.executable).resolve())
    assert elf.interpreter.startswith("/lib")
    assert "libc.so.6" in elf.needed


def test_sections_have_names(compile_library: Build) -> None:
    names = [section.name for section in read_sections(compile_library())]
    assert names[0] == ""
    assert {".dynsym", ".dynstr", ".dynamic", ".text"} <= set(names)


@pytest.mark.parametrize(
    ("start", "machine", "bits", "order"),
    [
        (b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x28\x00", "armv7l", 32, "little"),
        (b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x03\x00\x16", "s390x", 64, "big"),
        (b"\x7fELF\x01\x02\x01" + bytes(9) + b"\x00\x02\x00\x14", "ppc", 32, "big"),
    ],
)
def test_other_kinds_are_named(start: bytes, machine: str, bits: int, order: str, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(start + bytes(44))
    with pytest.raises(ElfUnsupported) as caught:
        read(tmp_path / "x.so")
    assert caught.value.identity.machine_name == machine
    assert (caught.value.identity.bits, caught.value.identity.byte_order) == (bits, order)
    assert caught.value.reason == f"ELF{bits} {order}-endian for {machine}; only ELF64 little-endian is read"


def test_an_aarch64_library_is_read_like_any_other(compile_library: Build, tmp_path: Path) -> None:
    # Only e_machine tells them apart: the tables are the same.
    data = bytearray(compile_library(SOURCE, "-lm").read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "x.so").write_bytes(data)
    elf = read(tmp_path / "x.so")
    assert elf.machine == "aarch64"
    assert b"offered_function" in elf.symbols.exports


def test_what_is_no_elf_file(tmp_path: Path) -> None:
    (tmp_path / "script.so").write_text("INPUT(libreal.so.1)\n")
    (tmp_path / "empty.so").write_bytes(b"")
    import os

    os.mkfifo(tmp_path / "fifo.so")
    codes = {}
    for name in ("script.so", "empty.so", "fifo.so", "absent.so", ".", "a\0b"):
        with pytest.raises(ElfError) as caught:
            read(tmp_path / name)
        codes[name] = caught.value.code
    assert codes == {
        "script.so": "elf-not-elf",
        "empty.so": "elf-not-elf",
        "fifo.so": "elf-unreadable",
        "absent.so": "elf-unreadable",
        ".": "elf-unreadable",
        "a\0b": "elf-unreadable",
    }
    assert not is_elf(tmp_path / "script.so")
    assert not is_elf(tmp_path / "absent.so")


def test_a_few_names_are_looked_up_by_their_hash(
    compile_library: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a few names of a large table it does not pay to decode it: the answer is that of the whole table."""
    monkeypatch.setattr("envspec.elf.reader._LARGE_TABLE", 400)
    source = "".join(f"int offered_{number}(void) {{ return {number}; }}\n" for number in range(400))
    path = compile_library(source + "extern int wanted(void);\nint calls(void) { return wanted(); }\n")
    every = read(path).symbols.exports
    assert {b"offered_0", b"offered_399", b"calls"} <= every and len(every) > 400
    asked = frozenset({b"offered_7", b"offered_399", b"offered_400", b"wanted", b"", b"x" * 600})
    fresh = read(path).symbols
    assert fresh.exported(asked) == asked & every == {b"offered_7", b"offered_399"}
    assert "exports" not in vars(fresh), "the table was decoded for it"
    for name in sorted(every)[::40]:
        assert read(path).symbols.exported(frozenset({name})) == {name}


@pytest.mark.parametrize("damage", [b"", bytes(16), b"\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0" + b"\xff" * 12])
def test_a_damaged_hash_table_is_an_error(damage: bytes) -> None:
    with pytest.raises(ElfError):
        for number in range(64):
            list(HashTable(damage).candidates(b"name%d" % number))
