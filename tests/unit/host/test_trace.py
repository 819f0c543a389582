"""What `-v` and the log of a build say of a command: enough to run it again, and no secret."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from envspec.host.commands import Command, run, start, traced
from envspec.host.trace import CommandText, command_lines
from envspec.report.secrets import Secrets, secrets_of


def lines(command: Command, own: dict[str, str]) -> list[str]:
    return list(command_lines(command, own, secrets_of(own, command.environment)))


def test_a_command_is_quoted_and_tells_only_what_differs() -> None:
    command = Command(
        arguments=("uv", "lock", "--prompt=a b"),
        environment={"PATH": "/bin", "NO_COLOR": "1", "A": "it's"},
        directory=Path("/tmp/a b"),
    )
    assert lines(command, {"PATH": "/bin", "A": "x", "VIRTUAL_ENV": "/venv"}) == [
        "$ cd '/tmp/a b' && env -u VIRTUAL_ENV 'A=it'\"'\"'s' NO_COLOR=1 uv lock '--prompt=a b'"
    ]


def test_an_environment_of_its_own_is_told_whole() -> None:
    command = Command(arguments=("c++", "--version"), environment={"LC_ALL": "C", "PATH": "/bin"})
    own = {f"V{n}": "x" for n in range(9)}
    assert lines(command, own) == ["$ env -i LC_ALL=C PATH=/bin c++ --version"]
    assert lines(Command(arguments=("true",), environment=own), own) == ["$ true"]


def test_what_is_told_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    words = [f"argument number {n} with 'quotes' and $dollars" for n in range(9)]
    command = Command(
        arguments=("printf", "%s\\n", *words),
        environment={**{n: v for n, v in os.environ.items() if n != "HOME"}, "MORE": "a\\b"},
        directory=tmp_path,
    )
    told = lines(command, dict(os.environ))
    assert len(told) > 4 and max(map(len, told)) < 130
    pasted = "\n".join(told).removeprefix("$ ")
    done = subprocess.run(["sh", "-c", pasted], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == words


def test_secrets_are_masked_in_variables_arguments_input_and_output(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('url = "https://me:hunter22@index.example/simple"\n')
    environment = {
        "PATH": os.environ["PATH"],
        "HF_TOKEN": "hf_abcdefgh",
        "UV_INDEX_MINE_PASSWORD": "opensesame",
        "UV_INDEX_URL": "https://t0ken-in-url@index.example/simple?token=abc123",
    }
    script = "echo $HF_TOKEN; echo opensesame; echo https://me:hunter22@x/ >&2"
    command = Command(
        arguments=("sh", "-c", script, "hf_abcdefgh"),
        environment=environment, directory=tmp_path, inputs=(project,),
    )  # fmt: skip
    told: list[str] = []
    with traced(CommandText(told.append, output=True)):
        run(command)
    text = "\n".join(told)
    for secret in ("hf_abcdefgh", "opensesame", "hunter22", "t0ken-in-url", "abc123"):
        assert secret not in text
    assert "HF_TOKEN=***" in text and "UV_INDEX_URL=https://***@index.example/simple?token=***" in text
    assert '    | url = "https://***@index.example/simple"' in told
    assert told[-4:-1] == ["    | ***", "    | ***", "    | https://***@x/"]


def test_the_output_is_told_only_if_asked_for_and_bounded(tmp_path: Path) -> None:
    talks = Command(arguments=("sh", "-c", "echo said; printf 'a\\033[2Jb'; exit 3"), environment=os.environ)
    short: list[str] = []
    with traced(CommandText(short.append, output=False)):
        run(talks)
    assert len(short) == 2 and short[1].endswith("] exit 3 after 0.0 s")
    long: list[str] = []
    with traced(CommandText(long.append, output=True)):
        run(talks, merged=True)
        talker = Command(arguments=("sh", "-c", "echo in the log; sleep 60"), environment=os.environ)
        program = start(talker, tmp_path / "log")
        while not (tmp_path / "log").read_text():
            time.sleep(0.01)
        program.stop(timed_out=True)
    assert long[-2] == "    | in the log" and "] ended for its time after" in long[-1]
    assert "    | said" in long and "    | a\N{REPLACEMENT CHARACTER}[2Jb" in long
    much = Command(arguments=("sh", "-c", "yes | head -c 1000000"), environment=os.environ)
    told: list[str] = []
    with traced(CommandText(told.append, output=True)):
        run(much, limit=600_000)
    assert sum(map(len, told)) < 1_000_000 and any("(737856 bytes are left out)" in line for line in told)


def test_the_same_project_is_told_once(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[project]\n")
    command = Command(arguments=("true",), environment=os.environ, inputs=(project, tmp_path / "none"))
    told: list[str] = []
    with traced(CommandText(told.append, output=False)):
        run(command)
        run(command)
        project.write_text("[tool.uv]\n")
        run(command)
    assert [line for line in told if line.startswith("    |")] == ["    | [project]", "    | [tool.uv]"]


@pytest.mark.parametrize("text", ["http://plain.example/", "git@host:path", "a@b", "x://y/z@w"])
def test_what_is_no_secret_stays(text: str) -> None:
    assert Secrets().masked(text) == text
