"""The loader done statically against the loader: small libraries in every arrangement that decides what is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envspec.audit.binaries import read_binaries
from envspec.audit.run import audit, link_all
from envspec.fs import walk
from envspec.report.findings import Finding, Report
from envspec.report.text import render_finding
from tests.support.loader_oracle import ask_the_loader
from tests.support.texts import without_more
from tests.unit.audit.conftest import Workbench

LEAF = "int leaf(void) { return 1; }"
MIDDLE = "int leaf(void); int middle(void) { return leaf(); }"
TOP = "int middle(void); int top(void) { return middle(); }"
RPATH = "-Wl,--disable-new-dtags,-rpath,"
RUNPATH = "-Wl,--enable-new-dtags,-rpath,"
LAZY = "-Wl,-z,lazy,--allow-shlib-undefined"


def module(name: str, source: str) -> str:
    """Return C of an extension module of a name."""
    return f"{source} void *PyInit_{name}(void) {{ return 0; }}"


Arrange = Callable[[Workbench], object]


def found_by_runpath(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    bench.library("a/libmiddle.so", MIDDLE, str(leaf), RUNPATH + "$ORIGIN/../b")


def found_by_rpath_in_braces(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    bench.library("a/libmiddle.so", MIDDLE, str(leaf), RPATH + "${ORIGIN}/../b")


def not_found(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    bench.library("a/libmiddle.so", MIDDLE, str(leaf))


def found_by_library_path(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    bench.library("a/libmiddle.so", MIDDLE, str(leaf))
    (bench.cuda / "lib64" / "libleaf.so").hardlink_to(leaf)


def rpath_is_inherited(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    middle = bench.library("c/libmiddle.so", MIDDLE, str(leaf))
    bench.library("a/libtop.so", TOP, str(middle), LAZY, RPATH + "$ORIGIN/../b:$ORIGIN/../c")


def runpath_is_not_inherited(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    middle = bench.library("c/libmiddle.so", MIDDLE, str(leaf))
    bench.library("a/libtop.so", TOP, str(middle), LAZY, RUNPATH + "$ORIGIN/../b:$ORIGIN/../c")


def runpath_hides_the_inherited_rpath(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    middle = bench.library("c/libmiddle.so", MIDDLE, str(leaf), RUNPATH + "/nowhere")
    bench.library("a/libtop.so", TOP, str(middle), LAZY, RPATH + "$ORIGIN/../b:$ORIGIN/../c")


def loaded_before_by_its_soname(bench: Workbench) -> None:
    leaf = bench.library("b/libleaf.so", LEAF)
    middle = bench.library("c/libmiddle.so", MIDDLE, str(leaf))
    flags = (str(leaf), str(middle), LAZY, "-Wl,--no-as-needed", RUNPATH + "$ORIGIN/../b:$ORIGIN/../c")
    bench.library("a/libtop.so", "int leaf(void); " + TOP + " int other(void) { return leaf(); }", *flags)


def symbol_missing(bench: Workbench) -> None:
    leaf = bench.library("a/libleaf.so", LEAF)
    bench.library("a/libmiddle.so", MIDDLE, str(leaf), RUNPATH + "$ORIGIN")
    bench.library("a/libleaf.so", "int another(void) { return 1; }")


def weak_symbol_missing(bench: Workbench) -> None:
    bench.library(
        "a/libmiddle.so", "__attribute__((weak)) int leaf(void); int m(void) { return leaf ? leaf() : 0; }"
    )


def symbol_of_the_interpreter(bench: Workbench) -> None:
    bench.library("a/ext.abi3.so", "int Py_IsInitialized(void); int m(void) { return Py_IsInitialized(); }")


def versioned(bench: Workbench, first: str, then: str) -> None:
    script = bench.root / "map"
    script.write_text(f"{first} {{ global: leaf; local: *; }};\n")
    leaf = bench.library("a/libleaf.so", LEAF, f"-Wl,--version-script={script}")
    bench.library("a/libmiddle.so", MIDDLE, str(leaf), RUNPATH + "$ORIGIN")
    script.write_text(f"{then} {{ global: leaf; local: *; }};\n")
    bench.library("a/libleaf.so", LEAF, f"-Wl,--version-script={script}")


def symbol_of_a_version(bench: Workbench) -> None:
    versioned(bench, "LEAF_2", "LEAF_2")


def symbol_of_another_version(bench: Workbench) -> None:
    versioned(bench, "LEAF_2", "LEAF_1")


ARRANGEMENTS: list[tuple[Arrange, bool]] = [
    (found_by_runpath, True),
    (found_by_rpath_in_braces, True),
    (not_found, False),
    (found_by_library_path, True),
    (rpath_is_inherited, True),
    (runpath_is_not_inherited, False),
    (runpath_hides_the_inherited_rpath, False),
    (loaded_before_by_its_soname, True),
    (symbol_missing, False),
    (weak_symbol_missing, True),
    (symbol_of_the_interpreter, True),
    (symbol_of_a_version, True),
    (symbol_of_another_version, False),
]


@pytest.mark.parametrize(
    ("arrange", "loads"), ARRANGEMENTS, ids=lambda value: getattr(value, "__name__", None)
)
def test_the_audit_and_the_loader_come_to_the_same(bench: Workbench, arrange: Arrange, loads: bool) -> None:
    arrange(bench)
    environment = bench.environment()
    linkage = link_all(environment, read_binaries(bench.venv))
    assert linkage is not None
    answers = ask_the_loader(environment, linkage, linkage.results)
    assert all(answer.agrees for answer in answers), answers
    assert all(answer.audit for answer in answers) == loads, answers


def audited(bench: Workbench, **environment: object) -> Report:
    names = [path for path, _ in walk(bench.venv)]
    return audit(bench.environment(**environment), "out", names, bench.owners())


def findings(bench: Workbench, code: str) -> list[Finding]:
    return [f for f in audited(bench).findings if f.code == code]


def rendered(bench: Workbench, code: str) -> str:
    (found,) = findings(bench, code)
    return without_more(render_finding(found))


def test_a_missing_library_is_named_with_its_places(bench: Workbench) -> None:
    leaf = bench.library("b.libs/libleaf.so", LEAF)
    bench.library("a/middle.abi3.so", module("middle", MIDDLE), str(leaf))
    bench.package("middle", "1.0", "a/middle.abi3.so")
    bench.package("leaf", "2.0", "b.libs/libleaf.so")
    assert rendered(bench, "library-missing").replace(str(bench.root), "ROOT") == (
        "error[library-missing]: libleaf.so is not found; 1 file of middle 1.0 cannot be loaded without it\n"
        "  needed by a/middle.abi3.so (middle 1.0)\n"
        "  leaf 2.0 has it at b.libs/libleaf.so, for itself\n"
        "  searched: ROOT/cuda/lib64, the system\n"
        "  fix: add the package that brings libleaf.so to the profile, or install it on the system"
    )


def test_a_missing_symbol_is_named_demangled_with_who_has_it(bench: Workbench) -> None:
    leaf = bench.library("a/libleaf.so", "int _ZN4demo4leafEi(int x) { return x; }")
    source = module("middle", "int _ZN4demo4leafEi(int); int middle(void) { return _ZN4demo4leafEi(1); }")
    bench.library("a/middle.abi3.so", source, str(leaf), RUNPATH + "$ORIGIN")
    bench.library("a/libleaf.so", LEAF)
    bench.library("b/libelse.so", "int _ZN4demo4leafEi(int x) { return x; }")
    bench.package("middle", "1.0", "a/middle.abi3.so")
    bench.package("else", "3.0", "b/libelse.so")
    assert rendered(bench, "symbol-missing") == (
        "error[symbol-missing]: middle 1.0 cannot be loaded: 1 symbol missing\n"
        "  a/middle.abi3.so\n"
        "    missing: demo::leaf(int) (defined by b/libelse.so (else 3.0), which is not loaded with it)\n"
        "  fix: build again, or pin a release that belongs to what is installed"
    )


def test_of_variants_one_is_enough(bench: Workbench) -> None:
    gone = bench.library("x/libcore13.so", LEAF)
    bench.library("a/hook_cu13.abi3.so", LEAF)
    for name in ("a/hook.abi3.so", "a/hook_cu12.abi3.so"):
        bench.library(name, MIDDLE, str(gone))
    gone.unlink()
    bench.package("hook", "1.0", "a/hook.abi3.so", "a/hook_cu12.abi3.so", "a/hook_cu13.abi3.so")
    assert not findings(bench, "library-missing")
    assert len(findings(bench, "variant-unused")) == 1


def test_where_no_variant_loads_it_is_an_error(bench: Workbench) -> None:
    gone = bench.library("x/libcore13.so", LEAF)
    for name in ("hook_cu13", "hook_cu12"):
        bench.library(f"a/{name}.abi3.so", module(name, MIDDLE), str(gone))
    gone.unlink()
    assert "libcore13.so is not found; 2 files" in rendered(bench, "library-missing")


def test_a_package_may_load_its_own_libraries_in_order(bench: Workbench) -> None:
    leaf = bench.library("a.libs/libleaf-1234.so", LEAF)
    bench.library("a.libs/libmiddle-1234.so", MIDDLE, str(leaf))
    assert not findings(bench, "library-missing")


def test_a_truncated_library_is_damaged_also_where_its_symbols_are_intact(bench: Workbench) -> None:
    library = bench.library("a/libleaf.so", LEAF + " char big[1 << 20] = {1};")
    data = library.read_bytes()
    library.write_bytes(data[: len(data) // 2])
    assert "a/libleaf.so is no library that can be loaded: the loader maps" in rendered(
        bench, "library-damaged"
    )
    library.write_bytes(data[:100])
    assert "[library-damaged]" in rendered(bench, "library-damaged")
    library.write_bytes(b"")
    assert "[library-damaged]" in rendered(bench, "library-damaged")


def test_a_library_for_another_machine(bench: Workbench) -> None:
    library = bench.library("a/libleaf.so", LEAF)
    data = bytearray(library.read_bytes())
    data[18:20] = (243).to_bytes(2, "little")
    library.write_bytes(data)
    assert "a/libleaf.so is for riscv64, this environment is for" in rendered(bench, "library-machine")
    library.rename(library.with_name("libleaf_riscv64.so"))
    assert not findings(bench, "library-machine")


def with_green_contexts(bench: Workbench, driver: str) -> None:
    """A library that asks the driver for a function of CUDA 12.4, and the stub. `driver` is C that a driver here consists of."""
    (bench.cuda / "lib64" / "stubs").mkdir()
    stub = bench.library("stub.so", "int cuGreenCtxCreate(void) { return 34; }", soname="libcuda.so.1")
    source = "int cuGreenCtxCreate(void); int m(void) { return cuGreenCtxCreate(); }"
    bench.library("a/libuses.so", source, str(stub))
    stub.rename(bench.cuda / "lib64" / "stubs" / "libcuda.so")
    if driver:
        made = bench.library("libcuda.so.1", driver)
        made.rename(bench.cuda / "lib64" / "libcuda.so.1")
    (bench.cuda / "include").mkdir()
    (bench.cuda / "include" / "cudaTypedefs.h").write_text(
        "typedef CUresult(CUDAAPI *PFN_cuGreenCtxCreate_v12040)(int);\n"
    )


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a driver, also where the tests run on one that has it."""
    monkeypatch.setattr("envspec.audit.loader.own_cache", lambda machine: {})


@pytest.mark.usefixtures("no_driver")
def test_what_only_the_driver_brings_is_asked_of_it(bench: Workbench) -> None:
    with_green_contexts(bench, driver="")
    assert rendered(bench, "driver-library") == (
        "note[driver-library]: libcuda.so.1 (the CUDA driver) is asked of the driver by 1 file; this machine has none\n"
        "  a/libuses.so\n"
        "  the newest of 1 symbols asked of it: cuGreenCtxCreate, since CUDA 12.4, driver 550.54.14"
    )
    assert not findings(bench, "driver-symbol")


@pytest.mark.usefixtures("no_driver")
def test_a_profile_may_not_admit_a_driver_that_lacks_symbols(bench: Workbench) -> None:
    with_green_contexts(bench, driver="")
    report = audited(bench, minimum_driver="535.54.03")
    (found,) = [f for f in report.findings if f.code == "driver-symbol"]
    assert (
        found.message
        == "cuGreenCtxCreate came with CUDA 12.4; the profile admits driver 535.54.03 (CUDA 12.2)"
    )
    assert found.fix == 'minimum-driver = "550.54.14"'


@pytest.mark.usefixtures("no_driver")
def test_a_driver_that_is_here_is_asked(bench: Workbench) -> None:
    with_green_contexts(bench, driver="int cuGreenCtxCreate(void) { return 0; }")
    assert not findings(bench, "driver-library")
    assert not findings(bench, "driver-symbol")


@pytest.mark.usefixtures("no_driver")
def test_a_driver_that_is_here_and_too_old(bench: Workbench) -> None:
    with_green_contexts(bench, driver="int cuInit(void) { return 0; }")
    bench.package("uses", "1.0", "a/libuses.so")
    assert rendered(bench, "driver-symbol") == (
        "error[driver-symbol]: a/libuses.so asks this machine's driver for 1 symbol that it lacks\n"
        "  cuGreenCtxCreate\n"
        "  cuGreenCtxCreate came with CUDA 12.4\n"
        "  fix: install driver 550.54.14 or newer"
    )
    assert not findings(bench, "symbol-missing")


@pytest.mark.usefixtures("no_driver")
def test_a_driver_library_without_a_stub_is_told_by_its_names(bench: Workbench) -> None:
    nvml = bench.library("nvml.so", "int nvmlInit_v2(void) { return 0; }", soname="libnvidia-ml.so.1")
    bench.library("a/libuses.so", "int nvmlInit_v2(void); int m(void) { return nvmlInit_v2(); }", str(nvml))
    nvml.unlink()
    assert "since which driver is unknown" in rendered(bench, "driver-library")
    assert not findings(bench, "symbol-missing")


def test_a_32_bit_helper_is_a_note_and_an_extension_an_error(bench: Workbench) -> None:
    helper = bench.site / "a" / "helper.so"
    helper.parent.mkdir()
    helper.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(9) + (3).to_bytes(2, "little") * 2 + bytes(64))
    assert rendered(bench, "library-machine").startswith(
        "note[library-machine]: a/helper.so is not loaded here"
    )
    helper.rename(helper.with_name("ext.abi3.so"))
    assert rendered(bench, "library-damaged").startswith(
        "error[library-damaged]: a/ext.abi3.so is no library"
    )
