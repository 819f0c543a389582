"""What it means that a library does not load from where it lies: by how it is reached."""

from __future__ import annotations

import subprocess

import pytest

from envspec.report.findings import Finding, Severity
from tests.unit.audit.conftest import MINOR, Workbench
from tests.unit.audit.test_linkage import LEAF, MIDDLE, RUNPATH, audited, module

PLAIN = MINOR.replace(".", "")


def told(bench: Workbench) -> list[Finding]:
    """What the audit says of libraries."""
    return [f for f in audited(bench).findings if f.code != "driver-library"]


def one(bench: Workbench) -> tuple[Severity, str, str]:
    """The one finding there is."""
    (found,) = told(bench)
    return found.severity, found.code, found.subject


@pytest.mark.parametrize(
    ("requires", "severity"),
    [(("other",), Severity.NOTE), (("between",), Severity.NOTE), ((), Severity.WARNING)],
    ids=["required", "required by what is required", "not required"],
)
def test_a_library_in_another_package(
    bench: Workbench, requires: tuple[str, ...], severity: Severity
) -> None:
    leaf = bench.library("other/lib/libleaf.so", LEAF)
    bench.library("a/m.abi3.so", module("m", MIDDLE), str(leaf))
    bench.package("a", "1", "a/m.abi3.so", requires=requires)
    bench.package("between", "1", requires=('other>1; python_version > "3"',))
    bench.package("other", "2", "other/lib/libleaf.so")
    assert one(bench) == (severity, "library-order", "a")


def test_a_library_elsewhere_in_the_package_and_what_it_needs_in_turn(bench: Workbench) -> None:
    leaf = bench.library("a/x/libleaf.so", LEAF)
    middle = bench.library("a/y/libmiddle.so", MIDDLE, str(leaf))
    top = module("m", "int middle(void); int top(void) { return middle(); }")
    bench.library("a/m.abi3.so", top, str(middle), "-Wl,--allow-shlib-undefined")
    bench.package("a", "1", "a/x/libleaf.so", "a/y/libmiddle.so", "a/m.abi3.so")
    assert {(f.severity, f.code) for f in told(bench)} == {(Severity.NOTE, "library-order")}


def test_a_symbol_that_the_package_loads_first(bench: Workbench) -> None:
    bench.library("a/x/libleaf.so", LEAF)
    bench.library("a/m.abi3.so", module("m", MIDDLE))
    bench.package("a", "1", "a/x/libleaf.so", "a/m.abi3.so")
    assert one(bench) == (Severity.NOTE, "library-order", "a")


def lacking(bench: Workbench, path: str, source: str, library: str = "libgone.so.1") -> None:
    """A file that needs a library that is nowhere."""
    gone = bench.library("x/libgone.so", LEAF, soname=library)
    bench.library(path, source + " " + MIDDLE, str(gone))
    gone.unlink()


def test_a_plugin_is_a_note_and_one_of_the_toolkit_an_error(bench: Workbench) -> None:
    lacking(bench, "a/plugins/liba.so", "")
    bench.package("a", "1", "a/plugins/liba.so")
    assert one(bench) == (Severity.NOTE, "optional-library", "a")
    lacking(bench, "a/plugins/liba.so", "", "libcurand.so.10")
    assert one(bench) == (Severity.ERROR, "library-missing", "libcurand.so.10")


@pytest.mark.parametrize(
    ("init", "severity"),
    [
        ("from . import deep\n", Severity.ERROR),
        ("from a.deep.m import middle\n", Severity.ERROR),
        ("try:\n    from . import deep\nexcept ImportError:\n    deep = None\n", Severity.NOTE),
        ("def later():\n    from . import deep\n", Severity.NOTE),
        (
            "import contextlib\nwith contextlib.suppress(ImportError):\n    from .deep import m\n",
            Severity.NOTE,
        ),
        ("this is no Python", Severity.NOTE),
    ],
)
def test_a_module_is_as_needed_as_its_import(bench: Workbench, init: str, severity: Severity) -> None:
    lacking(bench, "a/deep/m.abi3.so", module("m", ""))
    (bench.site / "a/__init__.py").write_text(init)
    (bench.site / "a/deep/__init__.py").write_text("from .m import middle\n")
    bench.package("a", "1", "a/deep/m.abi3.so")
    assert one(bench)[0] == severity


def test_a_program_is_a_note(bench: Workbench) -> None:
    gone = bench.library("x/libleaf.so", LEAF)
    source = bench.root / "main.c"
    source.write_text("int leaf(void); int main(void) { return leaf(); }")
    (bench.site / "a").mkdir()
    subprocess.run(["gcc", "-o", bench.site / "a/tool", source, gone], check=True)
    gone.unlink()
    bench.package("a", "1", "a/tool")
    assert one(bench) == (Severity.NOTE, "optional-library", "a")


def test_a_module_for_another_python_beside_the_one_for_this(bench: Workbench) -> None:
    lacking(bench, f"a/m.cpython-{PLAIN}t-x86_64-linux-gnu.so", module("m", ""))
    bench.library(f"a/m.cpython-{PLAIN}-x86_64-linux-gnu.so", module("m", LEAF))
    bench.package("a", "1", f"a/m.cpython-{PLAIN}t-x86_64-linux-gnu.so")
    assert one(bench) == (Severity.NOTE, "variant-unused", "a")


@pytest.mark.parametrize(
    ("exports", "severity"),
    [("int one(void) { return 1; }", Severity.NOTE), ("int other(void) { return 1; }", Severity.ERROR)],
    ids=["the same", "something else"],
)
def test_names_equal_but_for_tags_are_variants_if_they_export_the_same(
    bench: Workbench, exports: str, severity: Severity
) -> None:
    lacking(bench, "a/libm_xpu2025.so", "int one(void) { return 1; }", "libcurand.so.10")
    bench.library(
        "a/libm_cuda132.so", exports + (" int middle(void) { return 1; }" if "one" in exports else "")
    )
    bench.package("a", "1", "a/libm_xpu2025.so", "a/libm_cuda132.so")
    assert one(bench)[0] == severity


def test_one_library_in_two_packages_is_two_findings(bench: Workbench) -> None:
    for package in ("a", "b"):
        lacking(bench, f"{package}/m.abi3.so", module("m", ""))
        bench.package(package, "1", f"{package}/m.abi3.so")
    assert [(f.code, f.subject) for f in told(bench)] == [("library-missing", "libgone.so.1")] * 2


def test_a_library_that_was_lost_is_one_error_whoever_needs_it(bench: Workbench) -> None:
    leaf = bench.library("c/libleaf.so", LEAF)
    for package in ("a", "b"):
        bench.library(f"{package}/plugins/libm.so", MIDDLE, str(leaf), RUNPATH + "$ORIGIN/../../c")
        bench.package(package, "1", f"{package}/plugins/libm.so")
    bench.package("c", "1", "c/libleaf.so")
    leaf.unlink()
    assert one(bench) == (Severity.ERROR, "library-missing", "libleaf.so")
