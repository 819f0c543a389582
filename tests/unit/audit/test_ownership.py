"""RECORDs against the disk."""

from __future__ import annotations

from envspec.audit.binaries import list_files
from envspec.audit.ownership import ownership_findings
from envspec.report.text import render_finding
from tests.support.texts import without_more
from tests.unit.audit.conftest import Workbench


def found(bench: Workbench, *, hashes: bool = False, **environment: object) -> list[str]:
    """The rendered findings."""
    files = list_files(bench.venv)
    findings = ownership_findings(bench.environment(**environment), files, hashes=hashes)
    return [without_more(render_finding(finding)) for finding in findings]


def write(bench: Workbench, path: str, text: str) -> None:
    target = bench.site / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def test_what_is_as_recorded_gives_nothing(bench: Workbench) -> None:
    write(bench, "a/one.py", "1")
    bench.package("a", "1.0", "a/one.py")
    write(bench, "a/__pycache__/one.cpython-312.pyc", "bytecode")
    assert found(bench, hashes=True, packages=(("a", "1.0"),)) == []


def test_a_file_of_another_size_and_a_missing_one(bench: Workbench) -> None:
    for name in ("a/one.py", "a/two.py"):
        write(bench, name, "1")
    bench.package("a", "1.0", "a/one.py", "a/two.py")
    write(bench, "a/one.py", "22")
    (bench.site / "a/two.py").unlink()
    assert found(bench) == [
        "error[file-missing]: a 1.0: 1 file of it is not there\n  a/two.py\n  fix: build again",
        "error[file-changed]: a 1.0: 1 file of it is not what was installed\n"
        "  a/one.py: 2 bytes, RECORD says 1\n"
        "  fix: build again; a change that you need belongs into a package of its own",
    ]


def test_content_of_the_same_size_is_compared_on_demand(bench: Workbench) -> None:
    write(bench, "a/one.py", "1")
    bench.package("a", "1.0", "a/one.py")
    write(bench, "a/one.py", "2")
    assert found(bench) == []
    assert "a/one.py: another content of the same size" in found(bench, hashes=True)[0]


def test_a_foreign_file_and_a_foreign_package(bench: Workbench) -> None:
    write(bench, "a/one.py", "1")
    bench.package("a", "1.0", "a/one.py")
    write(bench, "b/mine.py", "1")
    assert found(bench, packages=(("a", "2.0"), ("c", "1.0"))) == [
        "error[package-foreign]: a 1.0 is installed, 2.0 is locked\n"
        "  fix: build again; change versions in the profile, not in the environment",
        "error[package-missing]: c 1.0 is locked and not installed\n  fix: build again",
        "warning[file-foreign]: 1 file below b in site-packages is of no package\n"
        "  b/mine.py\n"
        "  fix: remove what you did not put there, or build again",
    ]
    assert found(bench, packages=())[0].startswith(
        "error[package-foreign]: a 1.0 is installed and not locked"
    )


def test_a_contested_path_has_to_be_the_winners(bench: Workbench) -> None:
    write(bench, "x.py", "of b")
    bench.package("b", "1.0", "x.py")
    write(bench, "x.py", "of a")
    bench.package("a", "1.0", "x.py")
    packages = (("a", "1.0"), ("b", "1.0"))
    assert found(bench, packages=packages, winners=(("x.py", "a"),)) == []
    (wrong,) = found(bench, packages=packages, winners=(("x.py", "b"),))
    assert "b 1.0: 1 file of it is not what was installed\n  x.py: another content of the same size" in wrong
