"""The tables: every row is complete, compiles, and runs in linear time."""

from __future__ import annotations

import re
import time
from typing import get_args

import pytest

from envspec.diagnose import answering, candidates, forms, lines, problems, reading, tolerance, worker
from envspec.diagnose.kinds import Kind
from envspec.diagnose.knowledge import Family, Harmless, MisleadingLine, knowledge
from envspec.diagnose.phrases import ListName, phrase_lists
from envspec.diagnose.scoring import Distance, Limit, Number, Step, scores

TABLES = knowledge()
ROWS: list[Family | MisleadingLine | Harmless] = [*TABLES.families, *TABLES.misleading, *TABLES.harmless]
PATTERNS = sorted({p for row in ROWS for p in (row.pattern, row.unless) if p})
PATTERNS += [pattern for phrases in phrase_lists().values() for pattern in phrases.patterns]
CODE_PATTERNS: list[re.Pattern[str]] = [
    value
    for module in (answering, candidates, forms, lines, problems, reading, tolerance, worker)
    for item in vars(module).values()
    for value in (item if isinstance(item, tuple) else (item,))
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
]


def test_rows_are_complete() -> None:
    for row in ROWS:
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", row.id)
        assert row.contains, row.id
        # The index files them under four characters.
        assert all(len(literal) >= 4 for literal in row.contains), row.id
        assert len(set(row.contains)) == len(row.contains), row.id
        assert row.source, row.id
        assert re.fullmatch(r"20\d\d-\d\d", row.as_of), row.id
        for pattern in (row.pattern, row.unless):
            re.compile(pattern)


def test_families_say_what_they_mean_and_what_fixes_them() -> None:
    known = {f.id for f in TABLES.families} | {f"kind:{kind.value}" for kind in Kind}
    for family in TABLES.families:
        assert family.meaning.endswith((".", "}")), family.id
        assert family.fix.endswith("."), family.id
        names = set(re.findall(r"\{(\w+)\}", family.meaning + family.fix))
        groups = {re.sub(r"\d+$", "", name) for name in re.compile(family.pattern).groupindex}
        assert names <= groups, family.id
        assert set(family.follows) <= known, family.id


def test_names_are_unique() -> None:
    for table in (TABLES.families, TABLES.misleading, TABLES.harmless):
        names = [row.id for row in table]
        assert len(set(names)) == len(names)


def test_every_kind_has_a_default() -> None:
    assert set(TABLES.defaults) == set(Kind)


def test_every_score_is_in_the_table_with_its_reason() -> None:
    table = scores()
    parts = (table.kinds, Kind), (table.steps, Step), (table.limits, Limit), (table.distances, Distance)
    numbers: list[Number] = []
    for part, names in parts:
        assert set(part) == set(names)
        numbers += part.values()
    assert all(number.why.endswith(".") for number in numbers)


@pytest.mark.parametrize("name", get_args(ListName))
def test_list_of_phrases_is_complete(name: ListName) -> None:
    phrases = phrase_lists()[name]
    assert phrases.what.endswith(".")
    assert phrases.source
    assert re.fullmatch(r"20\d\d-\d\d", phrases.as_of)
    assert phrases.texts or phrases.patterns
    assert len({*phrases.texts, *phrases.patterns}) == len(phrases.texts) + len(phrases.patterns)


def test_there_is_no_list_of_phrases_that_nothing_uses() -> None:
    assert set(phrase_lists()) == set(get_args(ListName))


def _hostile() -> list[str]:
    """Long lines that make a backtracking pattern try everything: repeated characters, and repeated literals."""
    length = lines.QUOTE_LIMIT
    seeds = [
        "a",
        " ",
        "/",
        ":",
        ".",
        "0",
        "(",
        "a.",
        "a/",
        "a:",
        "a: ",
        "a b",
        "1:",
        "_Z",
        "-",
        "a-",
        "\\",
        "'",
        "=",
        "[",
        "error: ",
        "nvcc ",
    ]
    seeds += [
        "/a:1:1: ",
        "a(1): ",
        "ld: ",
        "x.o: ",
        "A.B",
        "because ",
        "Error",
        "cannot find ",
        "version `",
        "0x1f ",
        "lib.so",
        "not found",
    ]
    return [(seed * length)[:length] + end for seed in seeds for end in ("", "!")]


HOSTILE = _hostile()


ALL_PATTERNS = [*map(re.compile, PATTERNS), *CODE_PATTERNS]


@pytest.mark.parametrize("number", range(len(ALL_PATTERNS)))
def test_a_pattern_does_not_backtrack_without_end(number: int) -> None:
    pattern = ALL_PATTERNS[number]
    for line in HOSTILE:
        start = time.process_time()
        pattern.search(line)
        assert time.process_time() - start < 0.25, (pattern.pattern, line[:20])
