"""The environment script, sourced in every shell that it promises to work in."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.activation.process import process_environment
from envspec.activation.script import quoted, quoted_value, render_script
from envspec.activation.settings import Value
from envspec.activation.values import SCRIPT
from tests.support import needs
from tests.support.pairwise import pairwise
from tests.support.shells import BOOKKEEPING, SHELLS, VALUES, Output, Shell, parsed

SOURCE = ". out/sglang_env.sh"

ODD_BASE = {
    "PATH": ":/usr/local/bin::/usr/bin:/bin:",
    "LD_LIBRARY_PATH": "/opt/lib::/usr/local/cuda/lib64/stubs:/opt/cuda/stubs/:/opt/stubs/lib",
    "LIBRARY_PATH": ":",
    "PYTHONPATH": "/home/me/src",
    "PYTHONHOME": "",
    "CUDA_HOME": "/usr/local/cuda",
    "TRITON_CACHE_DIR": "",
    "OMP_NUM_THREADS": "1",
    "HOME": "/home/me",
}


def test_script_and_function_make_the_same_environment(shell: Shell, out: Output) -> None:
    for base in ({}, ODD_BASE, {"MAX_JOBS": "3"}, {"MAX_JOBS": ""}):
        # zsh and bash fill in some of their own.
        base = shell.exports(":", cwd=out.root.parent, env={"PATH": "/usr/bin:/bin", **base})
        sourced = shell.exports(SOURCE, cwd=out.root.parent, env=base)
        # Free memory moves between the two looks at it; the count has tests of its own.
        computed = process_environment(VALUES, out.generation(1), base)
        sourced_jobs, computed_jobs = int(sourced.pop("MAX_JOBS")), int(computed.pop("MAX_JOBS"))
        assert sourced == {name: value for name, value in computed.items() if name not in BOOKKEEPING}
        assert abs(sourced_jobs - computed_jobs) <= 1


def test_what_is_set(out: Output) -> None:
    env = process_environment(VALUES, out.root / "current", ODD_BASE)
    generation, cuda = out.generation(1), out.state / "toolchains" / VALUES.toolchain
    jit = out.state / "jit" / VALUES.toolchain
    assert env["PATH"] == f"{generation}/venv/bin:{cuda}/bin:/usr/local/bin:/usr/bin:/bin"
    assert env["LD_LIBRARY_PATH"] == (f"{cuda}/lib64:/opt/lib:/opt/stubs/lib")
    assert env["LIBRARY_PATH"] == f"{cuda}/lib64:{cuda}/lib64/stubs"
    assert env["CUDA_HOME"] == env["CUDA_PATH"] == str(cuda)
    assert env["VIRTUAL_ENV"] == f"{generation}/venv"
    assert env["FLASHINFER_CUDA_ARCH_LIST"] == env["TORCH_CUDA_ARCH_LIST"] == "12.0a"
    assert env["CUTE_DSL_ARCH"] == "sm_120a"
    assert env["FLASHINFER_WORKSPACE_BASE"] == f"{jit}/flashinfer"
    assert env["TRITON_LIBCUDA_PATH"] == f"{cuda}/lib64/stubs"
    assert env["QUACK_CACHE_DIR"] == "mine"
    assert "PYTHONPATH" not in env and "PYTHONHOME" not in env


def test_nothing_of_this_machine_is_in_the_text(out: Output) -> None:
    assert str(out.root) not in (out.generation(1) / SCRIPT).read_text()


def test_shellcheck_has_no_complaint(out: Output) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("shellcheck"), "-s", "sh", "-S", "style", out.script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Value(""), "''"),
        (Value("12.0a"), "'12.0a'"),
        (Value("it's"), "'it'\\''s'"),
        (Value("''"), "''\\'''\\'''"),
        (Value("$(x)\n"), "'$(x)\n'"),
    ],
)
def test_a_value_as_text(value: Value, text: str) -> None:
    assert quoted_value(value) == text


def test_a_shell_word_cannot_hold_nul() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quoted("a\0b")


def test_the_setting_lines_as_text() -> None:
    plain = msgspec.structs.replace(VALUES, variables=(("HF_HOME", "a'b"),))
    text = render_script(plain)
    assert "        \\export HF_HOME='a'\\''b'\n" in text
    assert "        \\export CUDA_HOME=\"$_envspec_state\"'/toolchains/0123456789abcdef'\n" in text
    assert (
        '    _envspec_prepend "${LD_LIBRARY_PATH-}" \\\n'
        "        \"$_envspec_state\"'/toolchains/0123456789abcdef/lib64'\n"
        '    \\export LD_LIBRARY_PATH="$_envspec_list"\n'
    ) in text


TEXT = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
HOSTILE = st.one_of(
    TEXT,
    st.text(alphabet=st.sampled_from("'\"\\$`(){}[]!#~*?&|;<> \t\n\r%:=\x01\x7f\x81\u0083é"), max_size=30),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=HOSTILE, prompt=HOSTILE)
def test_any_value_comes_out_as_it_went_in(value: str, prompt: str, out: Output, shell: Shell) -> None:
    out.write(1, msgspec.structs.replace(VALUES, variables=(("A_VALUE", value),), prompt=prompt))
    for locale in ("C", "C.UTF-8"):
        env = shell.exports(SOURCE, cwd=out.root.parent, env={"LC_ALL": locale})
        assert (env["A_VALUE"], env["VIRTUAL_ENV_PROMPT"]) == (value, prompt)


def test_a_value_runs_no_code(shell: Shell, out: Output) -> None:
    attacks = (
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "'$(touch pwned)'",
        "\n touch pwned\n",
        "a[$(touch pwned)]",
        "\\'; touch pwned #",
    )
    variables = tuple((f"ATTACK_{i}", attack) for i, attack in enumerate(attacks))
    out.write(1, msgspec.structs.replace(VALUES, variables=variables, prompt="".join(attacks)))
    shell.says(f"set -eu; {SOURCE}; envspec_deactivate", cwd=out.root.parent)
    assert not list(out.root.parent.rglob("pwned"))


# Everything that a shell can tell about itself, but for the variables that count or name the last command.
STATE = """
set +o; umask; trap; printf '%s' "$IFS" | od -c; alias
if [ -n "${ZSH_VERSION-}" ]; then emulate; setopt; functions; fi
set | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p' | grep -v -E \\
  '^(_|BASH_.*|LINENO|PIPESTATUS|RANDOM|SECONDS|SRANDOM|EPOCH.*|PPID|TTYIDLE|pipestatus|status|FUNCNAME|commands|functions|aliases|OPTIND|OPTARG)$'
if [ -n "${BASH_VERSION-}" ]; then declare -F; fi
"""


def test_undone_means_undone(shell: Shell, out: Output) -> None:
    base = {**ODD_BASE, "PATH": "/usr/bin:/bin:"}
    script = f"""
    set -eu
    MAX_JOBS=2
    CUDA_PATH=unexported
    looks() {{ {STATE} }}
    looks >before; /usr/bin/env -0 >before.env
    {SOURCE}
    [ "$MAX_JOBS" = 2 ]
    [ "$CUDA_PATH" = "$CUDA_HOME" ]
    envspec_deactivate
    /usr/bin/env -0 >after.env; looks >after
    printf '%s' "$CUDA_PATH $MAX_JOBS"
    """
    assert shell.says(script, cwd=out.root.parent, env=base) == "unexported 2"
    directory = out.root.parent
    before, after = ((directory / f"{when}.env").read_bytes().split(b"\0") for when in ("before", "after"))
    assert sorted(after) == sorted(before)
    assert (directory / "after").read_text() == (directory / "before").read_text()


def test_sourcing_changes_nothing_else_of_the_shell(shell: Shell, out: Output) -> None:
    """Options, traps, umask, IFS and aliases are as before; of functions only the way out is new."""
    script = f"""
    set -u
    looks() {{ {STATE} }}
    looks >before
    {SOURCE}
    looks >after
    """
    shell.says(script, cwd=out.root.parent)
    before, after = ((out.root.parent / when).read_text().splitlines() for when in ("before", "after"))
    new = {line.strip() for line in after} - {line.strip() for line in before}
    exported = set(process_environment(VALUES, out.generation(1), {}))
    left = {line for line in new if line.startswith("_envspec") and "=" not in line and " " not in line}
    assert {name for name in left if not name.startswith("_envspec_old_")} <= {
        "_envspec_active",
        "_envspec_exported",
    }
    if shell.name in ("dash", "ash"):
        assert new - left - exported == set()
    if shell.name == "bash":
        assert new - left - exported == {"declare -f envspec_deactivate"}


def test_twice_is_once(shell: Shell, out: Output) -> None:
    once = shell.exports(SOURCE, cwd=out.root.parent, env=ODD_BASE)
    twice = shell.exports(f"{SOURCE}\n{SOURCE}", cwd=out.root.parent, env=ODD_BASE)
    nested = _nested(shell, out)
    for env in (once, twice, nested):
        env.pop("MAX_JOBS")
    assert once == twice == nested
    undone = shell.exports(f"{SOURCE}\n{SOURCE}\nenvspec_deactivate", cwd=out.root.parent, env=ODD_BASE)
    assert undone == shell.exports(":", cwd=out.root.parent, env=ODD_BASE)


def _nested(shell: Shell, out: Output) -> dict[str, str]:
    """Sourced in a shell, and again in one that this shell started."""
    inner = shlex.join([*shell.command, "-c", f"{SOURCE}; exec /usr/bin/env -0"])
    return parsed(shell.says(f"{SOURCE}; {inner}", cwd=out.root.parent, env=ODD_BASE))


CALLERS = {
    "strict": "set -eu",
    "noglob": "set -f",
    "IFS is a slash": "IFS=/",
    "IFS has our letters": "IFS=_es0123456789:.",
    "IFS is unset": "unset IFS",
    "CDPATH": "CDPATH=/:/tmp; export CDPATH",
    "noclobber": "set -C",
    "aliases": "alias cd=false ls=false readlink=false unset=false export=false printf=false eval=false"
    " command=false read=false exec=false nproc=false sh=false echo=false break=false shift=false",
    "functions": "cd() { false; }; readlink() { false; }; pwd() { false; }; ls() { false; }",
    "another ZSH_VERSION": "export ZSH_ARGZERO=x",
    "no home": "unset HOME",
}
ONLY = {
    "bash": {
        "pipefail": "set -o pipefail -eE",
        "posix": "set -o posix -eu",
        "expanded aliases": "shopt -s expand_aliases\n" + CALLERS["aliases"],
        "ERR trap": "trap 'echo trapped >&2' ERR; set -E",
        "globs": "shopt -s nullglob dotglob failglob extglob",
        "exported ZSH_VERSION": "export ZSH_VERSION=5.9",
    },
    "zsh": {
        "pipefail": "set -o pipefail -eu",
        "arrays": "setopt ksh_arrays sh_word_split extended_glob glob_subst null_glob",
        "quotes": "setopt rc_quotes",
        "warnings": "setopt warn_create_global warn_nested_var",
        "no auto cd": "setopt auto_cd auto_pushd chase_links posix_builtins",
        "unique path": "typeset -U path",
        "ERR trap": "TRAPZERR() { echo trapped >&2; }",
        "as sh": "emulate sh",
        "as ksh": "emulate ksh",
        "no argzero": "setopt no_function_argzero prompt_subst",
    },
    "dash": {"exported BASH_VERSION": "export BASH_VERSION=5 ZSH_VERSION=5"},
    "ash": {"exported BASH_VERSION": "export BASH_VERSION=5 ZSH_VERSION=5"},
}
CASES = {
    f"{kind}: {name}": (kind, before)
    for kind, only in ONLY.items()
    for name, before in {**CALLERS, **only}.items()
}


@pytest.mark.parametrize(
    ("shell", "before"),
    [pytest.param(*case, marks=needs.program(SHELLS[case[0]][0])) for case in CASES.values()],
    ids=CASES.keys(),
    indirect=["shell"],
)
def test_whatever_the_caller_has_set(before: str, shell: Shell, out: Output) -> None:
    script = (
        f"{before}\n{SOURCE}\n'/usr/bin/env' -0 >inside\nenvspec_deactivate\n'/usr/bin/env' -0 >outside\n"
    )
    assert shell.says(script, cwd=out.root.parent) == ""
    inside = (out.root.parent / "inside").read_text()
    assert f"\0CUDA_HOME={out.state}/toolchains/{VALUES.toolchain}\0" in "\0" + inside
    assert "CUDA_HOME" not in (out.root.parent / "outside").read_text()


ODD_NAMES = (
    "plain",
    "with space",
    "é ü 漢",
    'it\'s "q"',
    "-dash",
    "*?[a]",
    "$HOME `x`",
    "a\\b",
    "%x {1..3}",
    "~",
)
# From where the script is sourced, and by which path: NAME is the odd one, of the output and of the directory it lies in.
WAYS = (
    ("elsewhere", "{root}/sglang_env.sh"),
    ("elsewhere", "../{name}/{name}/sglang_env.sh"),
    ("elsewhere", "./link to it"),
    ("elsewhere", "linked directory/sglang_env.sh"),
    ("elsewhere", "../{name}/{name}/current/sglang_env.sh"),
    ("{name}", "./{name}/sglang_env.sh"),
    ("{name}/{name}", "./sglang_env.sh"),
    ("{name}/{name}/.envspec/generations/1", "./sglang_env.sh"),
)
FORMS = (". {}", '( . {} && printf %s "$CUDA_HOME" ) && exit', "f() {{ . {}; }}; f")
PLACES = pairwise(tuple(SHELLS), ODD_NAMES, ("C", "C.UTF-8"), WAYS, FORMS)


@pytest.mark.parametrize(
    ("shell", "name", "locale", "way", "form"),
    [pytest.param(*case, marks=needs.program(SHELLS[case[0]][0])) for case in PLACES],
    ids=[str(number) for number in range(len(PLACES))],
    indirect=["shell"],
)
def test_it_finds_itself_wherever_it_lies(
    shell: Shell, name: str, locale: str, way: tuple[str, str], form: str, tmp_path: Path
) -> None:
    output = Output(tmp_path / name / name).write(1).switch(1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link to it").symlink_to(output.script)
    (elsewhere / "linked directory").symlink_to(output.root)
    cwd, path = (part.replace("{root}", str(output.root)).replace("{name}", name) for part in way)
    script = f'set -eu; {form.format(quoted(path))}; printf %s "$CUDA_HOME"'
    said = shell.says(script, cwd=tmp_path / cwd, env={"LC_ALL": locale})
    assert said == str(output.state / "toolchains" / VALUES.toolchain)


def test_a_shell_stays_with_its_generation(shell: Shell, out: Output) -> None:
    out.write(2)
    script = f"""
    {SOURCE}
    ln -sfn .envspec/generations/2 out/current
    printf '%s\\n' "$VIRTUAL_ENV"
    {SOURCE}
    printf '%s\\n' "$VIRTUAL_ENV" "$PATH"
    envspec_deactivate
    printf '%s\\n' "$PATH" "${{VIRTUAL_ENV-unset}}"
    """
    first, second, path, undone, venv = shell.says(script, cwd=out.root.parent).splitlines()
    assert first == f"{out.generation(1)}/venv"
    assert second == f"{out.generation(2)}/venv"
    assert str(out.generation(1)) not in path
    assert (undone, venv) == ("/usr/local/bin:/usr/bin:/bin", "unset")


def test_another_output_directory_takes_over(shell: Shell, out: Output, tmp_path: Path) -> None:
    other_values = msgspec.structs.replace(VALUES, toolchain="f" * 16, variables=())
    other = Output(tmp_path / "other").write(1, other_values).switch(1)
    env = shell.exports(f"{SOURCE}; . other/{SCRIPT}", cwd=tmp_path)
    assert str(out.root) not in "".join(env.values())
    assert env["CUDA_HOME"] == str(other.state / "toolchains" / ("f" * 16))
    assert "HF_HOME" not in env


NOT_FOUND = (
    "envspec: this shell does not tell where the script lies, or the script was moved.\n"
    "  Source it at its own place from bash, zsh, dash or busybox sh, or use: envspec run -- COMMAND\n"
)


def _refusal(shell: Shell, source: str, cwd: Path) -> str:
    script = f"""
    failed=0
    looks() {{ {STATE} /usr/bin/env -0 | sort -z; }}
    looks >before
    {source} || failed=$?
    looks >after
    exit "$failed"
    """
    done = shell.run(script, cwd=cwd)
    assert (done.returncode, done.stdout) == (1, "")
    assert (cwd / "after").read_bytes() == (cwd / "before").read_bytes()
    return done.stderr


def test_a_script_that_was_moved_says_so(shell: Shell, out: Output) -> None:
    cwd = out.root.parent
    (cwd / SCRIPT).write_bytes(out.script.read_bytes())
    assert _refusal(shell, f". ./{SCRIPT}", cwd) == NOT_FOUND


def test_a_script_without_a_place_says_so(shell: Shell, out: Output) -> None:
    script = f"cat out/{SCRIPT} | {{ . /dev/stdin || printf '%s' $?; }}"
    done = shell.run(script, cwd=out.root.parent)
    assert (done.stdout, done.stderr) == ("1", NOT_FOUND)


@pytest.mark.parametrize("name", ["a:b", "a\nb"])
def test_a_path_that_no_list_can_hold_is_refused(name: str, shell: Shell, tmp_path: Path) -> None:
    output = Output(tmp_path / name).write(1).switch(1)
    assert _refusal(shell, f". {quoted(str(output.script))}", tmp_path) == (
        f"envspec: the environment lies at a path that PATH cannot hold: {output.generation(1)}\n"
        "  It contains ':' or a line break. Build it with another --out directory.\n"
    )


def test_a_lost_toolchain_is_named(shell: Shell, out: Output) -> None:
    toolchain = out.state / "toolchains" / VALUES.toolchain
    (toolchain / "bin").rmdir()
    assert _refusal(shell, SOURCE, out.root.parent) == (
        f"envspec: the environment has lost its CUDA toolchain: {toolchain}\n"
        "  Build it again: envspec build PROFILE\n"
    )


def test_a_failure_leaves_what_was_active(shell: Shell, out: Output, tmp_path: Path) -> None:
    broken = Output(tmp_path / "broken").write(1).switch(1)
    (broken.state / "toolchains" / VALUES.toolchain / "bin").rmdir()
    script = f"""
    {SOURCE}
    . broken/{SCRIPT} 2>/dev/null || printf '%s\\n' "$VIRTUAL_ENV"
    envspec_deactivate
    printf '%s' "$PATH"
    """
    said = shell.says(script, cwd=tmp_path)
    assert said == f"{out.generation(1)}/venv\n/usr/local/bin:/usr/bin:/bin"
