"""Who imports whom: the table of rooms in docs/architecture.md and the code say the same."""

from __future__ import annotations

import re

from tests.support.imports import PACKAGE, ROOT, imports, loose_modules, room_of, rooms

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def _table() -> dict[str, set[str]]:
    """Each room of the table, from top to bottom, and what it may import."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\w ]+) \|$", PAGE, re.MULTILINE)
    assert len({room for room, _ in rows}) == len(rows) > 10
    return {room: set(named.split()) - {"nothing"} for room, named in rows}


def _real() -> dict[str, dict[str, str]]:
    """Each room, what it imports, and one import that shows it."""
    found: dict[str, dict[str, str]] = {room: {} for room in rooms()}
    for module, imported in imports().items():
        for other in imported:
            here, there = room_of(module), room_of(other)
            if here and there and here != there:
                found[here][there] = f"{module} imports {other}"
    return found


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    assert sorted(_table()) == sorted(rooms())


def test_the_table_goes_down() -> None:
    order = list(_table())
    up = [
        f"{room} names {other}, which stands above it"
        for at, (room, named) in enumerate(_table().items())
        for other in named
        if other not in order[at + 1 :]
    ]
    assert up == []


def test_rooms_import_what_the_table_says() -> None:
    table = _table()
    undeclared = [
        f"{shown}: {room} may not import {other}"
        for room, imported in _real().items()
        for other, shown in imported.items()
        if other not in table.get(room, set())
    ]
    assert undeclared == []
    unused = [
        f"{room} does not import {other} any more: take it out of its row"
        for room, named in table.items()
        for other in named - set(_real().get(room, {}))
    ]
    assert unused == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = imports()
    done: set[str] = set()

    def walk(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way[way.index(module) :], module))
        if module not in done:
            for other in sorted(known[module]):
                walk(other, (*way, module))
            done.add(module)

    for module in known:
        walk(module, ())


def test_one_module_at_most_stands_loose() -> None:
    assert len(loose_modules()) <= 1, loose_modules()


def test_nothing_but_the_command_line_is_started_from_the_top() -> None:
    assert imports()["envspec.__main__"] == {"envspec.cli.main"}
    assert imports()["envspec"] == set()


def test_rules_know_no_files_and_no_network() -> None:
    values = (
        "envspec.check.facts",
        "envspec.check.rules",
        "envspec.data",
        "envspec.elf.demangle",
        "envspec.host.cxx",
        "envspec.profile",
        "envspec.report",
        "envspec.torch_abi",
        "envspec.wheels.file",
        "envspec.wheels.strays",
    )
    for module, imported in imports().items():
        if module.startswith("envspec.check.rules"):
            assert [name for name in imported if not name.startswith(values)] == [], module


def test_each_planned_room_is_a_room_or_a_plan() -> None:
    planned = set(re.findall(r"^- `(\w+)`, ", PAGE, re.MULTILINE))
    assert planned and planned.isdisjoint(rooms()), "a room that is there has a row, and is no plan any more"
    assert not [name for name in planned if (PACKAGE / name).exists()]
