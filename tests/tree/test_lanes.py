"""The tests themselves: each is in a lane that something runs, and the units mirror the rooms."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conftest import LIMITS
from tests.support.imports import ROOT, rooms

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = ROOT / "tests"


def _directories(below: Path) -> set[str]:
    """The directories that hold tests, at any depth."""
    return {path.relative_to(below).parts[0] for path in below.rglob("test_*.py")}


def test_every_test_is_in_a_lane() -> None:
    """Those of `make test` are in pyproject.toml, the dear ones have a target of their own."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]
    quick = {Path(path).name for path in settings["testpaths"]}
    assert quick.isdisjoint(LIMITS)
    assert _directories(TESTS) == quick | set(LIMITS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [lane for lane in LIMITS if f"tests/{lane}\n" not in makefile] == []


def test_units_mirror_the_rooms() -> None:
    assert _directories(TESTS / "unit") <= rooms()


def test_nothing_is_collected_twice_or_by_accident() -> None:
    """What tests share has no tests in it."""
    assert not list((TESTS / "support").glob("test_*.py"))
