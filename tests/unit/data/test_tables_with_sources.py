"""Tables of facts: every row says where it is from and when that was read, and every name stands in one row."""

from __future__ import annotations

import re

import msgspec
import pytest

from envspec.data import load_table
from envspec.data.caller import (
    CacheDirectory,
    CallerVariable,
    SystemDemand,
    WheelLibraries,
    cache_directories,
    system_demands,
    variables,
    wheel_library,
)
from envspec.data.profile_values import ProfileValues, values_of
from envspec.data.toolkit_components import components, first_major_with

TABLES: dict[str, type[msgspec.Struct]] = {
    "caller_variables": CallerVariable,
    "cache_directories": CacheDirectory,
    "wheel_libraries": WheelLibraries,
    "system_demands": SystemDemand,
    "profile_values": ProfileValues,
}


@pytest.mark.parametrize("table", TABLES)
def test_every_row_has_a_source_and_a_date(table: str) -> None:
    for row in load_table(table, TABLES[table]):
        told = msgspec.structs.asdict(row)
        assert told["source"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", told["as_of"])


def test_a_variable_stands_in_one_row() -> None:
    names = [name for row in load_table("caller_variables", CallerVariable) for name in row.names]
    assert len(set(names)) == len(names)
    assert set(variables("headers")) < set(variables("search-list"))
    assert "" not in names


def test_only_the_cache_of_models_holds_nothing_that_is_run() -> None:
    assert [row.variable for row in cache_directories() if row.holds == "files"] == ["HF_HOME"]


@pytest.mark.parametrize(
    ("name", "brought"),
    [
        ("libcudart.so.13", True),
        ("libcudnn_graph.so.9", True),
        ("libtorch_cpu.so", True),
        ("libnvrtc-builtins.so.13.2", True),
        ("libcuda.so.1", False),
        ("libcudart_static.a", False),
        ("libstdc++.so.6", False),
    ],
)
def test_libraries_that_wheels_bring(name: str, brought: bool) -> None:
    assert bool(wheel_library().fullmatch(name)) == brought


def test_demands_come_with_the_lowest_first() -> None:
    assert [row.release for row in system_demands("libc.so.6")] == [(2, 28), (2, 34)]


def test_every_component_that_compilers_need_can_be_asked_for() -> None:
    assert {row.component for row in components()} <= set(values_of("cuda.components"))
    assert first_major_with("nvcc") == 13
    assert first_major_with("cudart") == 0
