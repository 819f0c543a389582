"""The documentation: made pages are current, links lead somewhere, commands exist, and nothing in it is of one machine."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from envspec.check.rules import RULES
from envspec.cli.main import cli
from envspec.doctor.checks import CHECKS
from envspec.profile import read_profile
from envspec.profile.keys import example_profile, profile_keys
from envspec.profile.strict import Table

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "envspec" / "report" / "explanations").glob("*.md"),
    ]
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"(?:^(?: {4}|\$ )|`)envspec ([a-z]+)([^`\n]*)")


def _texts() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        yield page, page.read_text(encoding="utf-8")


def _anchors(page: Path) -> set[str]:
    """The anchors of headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def test_made_reference_pages_are_current() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "make_reference.py"))
    for name, text in made["pages"]().items():
        assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == text, (
            f"{name}: run scripts/make_reference.py"
        )


def test_links_lead_somewhere() -> None:
    for page, text in _texts():
        for target in _LINK.findall(text):
            assert "://" not in target, f"{page}: {target}: other people's pages move"
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists() and file.is_relative_to(ROOT), (page, target)
            assert not anchor or anchor in _anchors(file), (page, target)


def test_files_and_directories_named_in_text_exist() -> None:
    named = r"(?<![\w./-])(?:docs|envspec|scripts|tests|templates|benchmarks)/[\w./-]*[\w/]"
    for page, text in _texts():
        for name in re.findall(named, text):
            assert (ROOT / name).exists(), (page, name)


def test_commands_and_options_exist() -> None:
    for page, text in _texts():
        for line in text.splitlines():
            for verb, rest in _COMMAND.findall(line):
                assert verb in cli.commands, (page, line)
                command = cli.commands[verb]
                known = {opt for parameter in command.params for opt in parameter.opts} | {
                    "--help",
                    "--version",
                }
                named = re.findall(r"(?<=\s)--[a-z-]+", rest.split(" -- ")[0])
                assert set(named) <= known, (page, line)


def test_pages_are_of_no_one_machine() -> None:
    for page, text in _texts():
        assert not re.search(r"/(root|home|work|tmp)/", text), page
        assert not re.search(r"\b(py" + r"pi|pythonhosted)\.", text), page


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        named = re.findall(r"(?:^ {4}|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert named and set(named) <= targets


def test_the_table_of_keys_is_what_the_reader_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    close = Table.close

    def record(table: Table) -> None:
        asked.update(table.dotted(key) for key in table._known)
        close(table)

    monkeypatch.setattr(Table, "close", record)
    path = tmp_path / "example.toml"
    path.write_text(example_profile(), encoding="utf-8")
    profile = read_profile(path)
    assert profile.cuda is not None and profile.overrides and profile.indexes and profile.environment

    tables = {row.key.rpartition(".")[0].removesuffix("[]") for row in profile_keys()}
    found = {re.sub(r"\[\d+\]", "[]", key).replace("some-package", "NAME") for key in asked}
    free = {
        key for key in found if key not in tables and not key.startswith(("packages.torch", "environment"))
    }
    written = {
        row.key for row in profile_keys() if row.key not in ("extends", "packages.NAME", "environment.NAME")
    }
    assert free - {"packages.NAME"} == written


def test_the_changelog_counts_right() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"`envspec check`: {len(RULES.all())} rules" in text
    assert f"`envspec doctor`: {len(CHECKS.all())} checks" in text
