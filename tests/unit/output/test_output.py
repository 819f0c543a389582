"""The output directory: what is taken over, what is refused, what is removed, and the one switch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envspec.output.cleanup import new_generation, sweep
from envspec.output.directory import create, existing
from envspec.output.generations import Output
from envspec.output.lock import locked
from envspec.report.errors import EnvspecError
from envspec.report.text import render_error
from tests.support.texts import without_more


def refused(path: Path) -> str:
    with pytest.raises(EnvspecError) as caught:
        create(path)
    return without_more(render_error(caught.value)).replace(str(path.parent), "DIR")


def finished(output: Output, text: str = "x") -> int:
    generation = output.begin()
    generation.script.write_text(text)
    output.publish(generation, b"{}\n", b"")
    return generation.number


def test_a_directory_is_made_and_may_be_made_again(tmp_path: Path) -> None:
    output = create(tmp_path / "a" / "out")
    assert output.current() is None and output.numbers() == ()
    assert finished(create(tmp_path / "a" / "out")) == 1
    assert sorted(p.name for p in output.root.iterdir()) == [
        ".envspec",
        "cuda",
        "current",
        "envspec.json",
        "sglang_env.sh",
        "venv",
    ]


def test_a_file_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert refused(tmp_path / "out") == (
        "error[output-not-directory]: DIR/out is a file\n  --out\n  fix: name a directory: --out DIR\n"
    )
    assert (tmp_path / "out").read_text() == "mine"


def test_somebody_elses_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    assert refused(tmp_path / "out") == (
        "error[output-foreign]: DIR/out is not empty and was not made by envspec\n"
        "  --out\n"
        "  it holds thesis.tex\n"
        "  fix: name another directory: --out DIR; envspec deletes nothing that it did not make\n"
    )
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_an_empty_directory_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert finished(create(tmp_path / "out")) == 1


@pytest.mark.parametrize("left", [(), (".owner.new",)])
def test_making_it_may_be_cut_short_and_is_done_again(tmp_path: Path, left: tuple[str, ...]) -> None:
    (tmp_path / "out" / ".envspec").mkdir(parents=True)
    for name in left:
        (tmp_path / "out" / ".envspec" / name).write_text("")
    assert finished(create(tmp_path / "out")) == 1


def test_what_was_published_is_not_discarded(tmp_path: Path) -> None:
    output = create(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt), new_generation(output) as generation:
        generation.script.write_text("x")
        output.publish(generation, b"{}\n", b"")
        raise KeyboardInterrupt  # between the switch and the last line
    assert output.current() == generation and generation.script.exists()


def test_what_was_not_published_is_discarded_with_its_toolchain(tmp_path: Path) -> None:
    output = create(tmp_path / "out")
    finished(output)
    old, new = "0" * 16, "1" * 16
    (output.toolchains_dir / old).mkdir()
    with pytest.raises(KeyboardInterrupt), new_generation(output):
        for name in (new, f"new-{new}"):
            (output.toolchains_dir / name).mkdir()
        raise KeyboardInterrupt
    assert output.numbers() == (1,)
    assert [p.name for p in output.toolchains_dir.iterdir()] == [old]


@pytest.mark.parametrize(
    "planted", ["out", "out/.envspec", "out/.envspec/generations", "out/.envspec/toolchains"]
)
def test_planted_links_lead_nowhere(tmp_path: Path, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "keep").write_text("x")
    place = tmp_path / planted
    if planted.count("/") == 2:
        create(tmp_path / "out")
        place.rmdir()
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim)
    with pytest.raises(EnvspecError) as caught:
        create(tmp_path / "out")
    assert caught.value.code in ("output-link", "output-foreign")
    assert [p.name for p in (victim).iterdir()] == ["keep"]


def test_a_planted_generation_link_is_not_followed_when_sweeping(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "keep").write_text("x")
    output = create(tmp_path / "out")
    (output.generations_dir / "7").symlink_to(victim)
    output.work.symlink_to(victim)
    sweep(output)
    assert [p.name for p in (victim).iterdir()] == ["keep"]
    assert not output.work.is_symlink()


def test_a_path_with_a_colon_cannot_be_an_output(tmp_path: Path) -> None:
    assert refused(tmp_path / "a:b").startswith("error[output-path]: 'DIR/a:b' holds a colon or a line break")


def test_a_current_link_that_leads_outside_counts_as_none(tmp_path: Path) -> None:
    output = create(tmp_path / "out")
    (output.root / "current").symlink_to("/etc")
    assert output.current() is None


def test_the_switch_keeps_the_old_generation(tmp_path: Path) -> None:
    output = create(tmp_path / "out")
    finished(output, "one")
    shell_of_one = Path(os.path.realpath(output.root / "sglang_env.sh"))
    finished(output, "two")
    assert (output.root / "sglang_env.sh").read_text() == "two"
    assert shell_of_one.read_text() == "one"
    assert output.numbers() == (1, 2)


def test_what_an_interrupted_build_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    output = create(tmp_path / "out")
    finished(output)
    debris = output.begin()
    (debris.path / "venv").mkdir()
    (output.toolchains_dir / "new-abc").mkdir()
    (output.toolchains_dir / "abc").mkdir()
    output.work.mkdir()
    (output.root / "notes.txt").write_text("mine")
    sweep(output)
    assert output.numbers() == (1,)
    assert [p.name for p in (output.toolchains_dir).iterdir()] == ["abc"]
    assert not output.work.exists()
    assert (output.root / "notes.txt").read_text() == "mine"


def test_a_file_in_the_way_of_a_link_is_not_replaced(tmp_path: Path) -> None:
    output = create(tmp_path / "out")
    (output.root / "venv").mkdir()
    (output.root / "venv" / "mine").write_text("x")
    with pytest.raises(EnvspecError) as caught:
        finished(output)
    assert caught.value.code == "output-foreign"
    assert (output.root / "venv" / "mine").read_text() == "x"
    assert output.current() is None


def test_only_what_envspec_built_is_existing(tmp_path: Path) -> None:
    with pytest.raises(EnvspecError) as caught:
        existing(tmp_path)
    assert caught.value.code == "output-missing"
    create(tmp_path / "out")
    assert existing(tmp_path / "out").root == tmp_path / "out"


def test_a_second_builder_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    import threading

    output = create(tmp_path / "out")
    told: list[str] = []
    release, holding = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(output, told.append):
            holding.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait(10)

    def on_wait(who: str) -> None:
        told.append(who)
        release.set()

    with locked(create(tmp_path / "out"), on_wait):
        pass
    holder.join()
    assert len(told) == 1 and told[0].startswith(f"process {os.getpid()} on ")
