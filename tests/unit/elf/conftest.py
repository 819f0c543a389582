"""Small libraries compiled on the spot, in the shapes that linkers give them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = """
extern int wanted_strong(int);
extern int wanted_weak(int) __attribute__((weak));
extern double cos(double);
int offered_function(int x) { return wanted_strong(x) + (wanted_weak ? wanted_weak(x) : 0); }
int offered_data = 7;
__attribute__((weak)) int offered_weak(void) { return (int)cos(offered_data); }
__attribute__((visibility("hidden"))) int hidden_function(void) { return 2; }
static int local_function(void) { return 3; }
int (*offered_pointer)(void) = local_function;
"""

VERSIONED = """
__asm__(".symver old_f, f@DEMO_1");
__asm__(".symver new_f, f@@DEMO_2");
int old_f(void) { return 1; }
int new_f(void) { return 2; }
int g(void) { return 3; }
"""

VERSION_SCRIPT = "DEMO_1 { global: f; g; local: *; };\nDEMO_2 { global: f; } DEMO_1;\n"


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function: C source and compiler flags -> path of the shared library."""
    number = 0

    def build(source: str = SOURCE, *flags: str, name: str = "libdemo.so.1") -> Path:
        nonlocal number
        number += 1
        folder = tmp_path_factory.mktemp(f"elf{number}")
        (folder / "demo.c").write_text(source)
        (folder / "demo.map").write_text(VERSION_SCRIPT)
        # Flags refer to files by bare names, so the compiler runs in the folder.
        command = ["gcc", "-O1", "-fPIC", "-shared", "-o", name, "demo.c", *flags]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return folder / name

    return build


def strip_section_headers(path: Path) -> Path:
    """A copy whose file header denies all section headers, as `sstrip` leaves it."""
    data = bytearray(path.read_bytes())
    data[0x28:0x30] = bytes(8)  # e_shoff
    data[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    copy = path.with_name("stripped-" + path.name)
    copy.write_bytes(data)
    return copy
