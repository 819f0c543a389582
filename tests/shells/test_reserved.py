"""The variables that a profile may not set, compared with what the shells themselves say is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from envspec.data.reserved_variables import settable
from tests.support.shells import Shell, shells

# Harmless to set, or what users do set.
COMMON = {
    "HOSTNAME",
    "HOME",
    "TERM",
    "LANG",
    "SHELL",
    "LOGNAME",
    "USER",
    "TMPDIR",
    "EDITOR",
    "TZ",
    "DISPLAY",
    "CC",
    "CXX",
}


# Each shell is asked for its own; zsh evaluates what is assigned to some of them.
ASKED = {
    "bash": "compgen -v",
    "zsh": "zmodload zsh/parameter"
    "; for name type in ${(kv)parameters}; do [[ $type = *special* ]] && print -r -- $name; done; :",
}


@pytest.mark.parametrize("shell", shells(*ASKED), indirect=True)
def test_no_variable_of_a_shell_may_be_set(shell: Shell, tmp_path: Path) -> None:
    # Without LC_*, which are special and harmless.
    names = shell.says(ASKED[shell.name], cwd=tmp_path).split()
    own = {name for name in names if not name.startswith("LC_")} - COMMON
    assert len(own) > 20
    assert sorted(name for name in own if settable(name)) == []
