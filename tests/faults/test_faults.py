"""The short part of `make faults`: the same faults every time, a few of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.harness import ERRNO, STAGES, Bench
from tests.faults.run import kill_other_commands
from tests.faults.scenes import (
    changing_wheel,
    dropping_network,
    full_disks,
    jumping_clock,
    read_only_disk,
    two_at_once,
    two_outputs_at_once,
)
from tests.support import needs
from tests.support.command import ENVSPEC


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("faults, größer"))


@pytest.fixture(autouse=True)
def nothing_was_lost(bench: Bench) -> Iterator[None]:
    bench.problems.clear()
    yield
    assert bench.problems == []


def test_killed_in_every_stage(bench: Bench) -> None:
    reached = set()
    for lines in range(8):
        reached.add(bench.kill_after(lines, 0.02))
        bench.check("killed")
    assert reached >= set(STAGES[:-1])


@pytest.mark.parametrize("who", ["main", "all", "self"])
def test_killed_at_a_file_operation(bench: Bench, who: str) -> None:
    total = len(bench.operations(bench.build_command()))
    bench.turn += 1
    bench.site.gc("out")
    for number in (total // 2, total - 12):
        bench.kill_at(number, who)
        bench.check("killed")


@pytest.mark.parametrize("error", ERRNO)
def test_the_file_system_fails(bench: Bench, error: str) -> None:
    total = len(bench.operations(bench.build_command()))
    bench.turn += 1
    bench.site.gc("out")
    for number, sticky in ((total // 3, True), (total - 13, False)):
        ended = bench.fail_at(number, error, sticky)
        assert ended.struck
        bench.check(error)


def test_a_record_that_could_not_be_written(bench: Bench) -> None:
    """uv does not notice, and says that it has installed everything."""
    done = bench.operations(bench.build_command())
    bench.turn += 1
    bench.site.gc("out")
    records = [
        i
        for i, line in enumerate(done, 1)
        if line.startswith("write ") and line.endswith(".dist-info/RECORD")
    ]
    unnoticed = 0
    for number in reversed(records):
        ended = bench.fail_at(number, "EDQUOT", False)
        unnoticed += "error[install-incomplete]" in ended.err
        bench.check("a RECORD that could not be written")
        if unnoticed:
            break
    assert unnoticed


def test_what_is_shown_is_on_disk_before_it_is_shown(bench: Bench) -> None:
    """A loss of power may come between any two of these."""
    done = bench.operations(bench.build_command())
    bench.turn += 1
    sync = next(i for i, line in enumerate(done) if line.startswith("syncfs /.envspec/generations/"))
    generation = done[sync].split(" ")[1]
    after = done[sync + 1 :]
    # Nothing is written to the generation behind its sync but the manifest, which is synced itself.
    manifest = f"{generation}/.envspec.json.new"
    order = [
        f"open {manifest}",
        f"fsync {manifest}",
        f"rename {generation}/envspec.json",
        f"fsync {generation}",
        "symlink /.current.new",
        "rename /current",
        "fsync ",
    ]
    assert [line for line in after if line in order] == order
    written = [
        line for line in after if generation in line and not line.startswith(("fsync", "rename", "unlink"))
    ]
    assert {line.split(" ")[1] for line in written} == {manifest}
    assert not any(line.startswith("rename /current") for line in done[:sync])
    assert any(line.startswith("rename /.envspec/last") for line in done[:sync])


@pytest.mark.parametrize("command", ["rollback", "switch back"])
def test_a_rollback_is_one_rename(bench: Bench, command: str) -> None:
    bench.site.made("out", f"{bench.new}.toml")
    done = bench.operations([*ENVSPEC, "rollback", "--out", "out"])
    assert [line for line in done if line.startswith(("rename", "symlink", "fsync "))] == [
        *[line for line in done if "holder" in line and line.startswith(("rename", "fsync"))],
        *[line for line in done if line == "fsync /.envspec"],
        "symlink /.current.new",
        "rename /current",
        "fsync ",
    ]
    bench.site.gc("out")


def test_other_commands_killed(bench: Bench) -> None:
    kill_other_commands(bench, 2)


@needs.mounts()
def test_full_disks(bench: Bench) -> None:
    full_disks(bench, (0, 96, 160))


@needs.mounts()
def test_a_disk_that_turns_read_only(bench: Bench) -> None:
    read_only_disk(bench, (3, 5))


def test_a_network_that_drops(bench: Bench) -> None:
    dropping_network(bench, (0, 500))


def test_a_wheel_that_changes(bench: Bench) -> None:
    changing_wheel(bench)


def test_a_clock_that_jumps(bench: Bench) -> None:
    jumping_clock(bench)


def test_two_builds_of_one_output(bench: Bench) -> None:
    two_at_once(bench)


def test_builds_of_different_outputs(bench: Bench) -> None:
    two_outputs_at_once(bench)
