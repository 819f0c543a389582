"""The group of commands: its table says the same as the commands, and a list of them imports none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envspec.cli.group import VERBS
from envspec.cli.main import cli


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_table_says_what_the_command_says(verb: object) -> None:
    ((name, module, text),) = [(v.name, v.module, v.help) for v in VERBS if v is verb]
    command = cli.commands[name]
    assert command.name == name
    assert command.callback is not None and command.callback.__module__ == f"envspec.cli.{module}"
    assert (command.help or "").partition("\n")[0] == text


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from envspec.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert all(f"  {verb.name} " in done.stdout for verb in VERBS)
    imported = {name for name in done.stderr.split() if name.startswith("envspec.")}
    assert not imported & {f"envspec.cli.{verb.module}" for verb in VERBS}
    assert "msgspec" not in done.stderr.split()


def test_a_command_imports_no_other() -> None:
    for name in ("digest", "explain", "profiles"):
        code = f"import sys; from envspec.cli.main import cli; cli.commands[{name!r}]; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        (own,) = (verb.module for verb in VERBS if verb.name == name)
        others = {f"envspec.cli.{verb.module}" for verb in VERBS if verb.module != own}
        assert not others & set(done.stdout.split()), name
