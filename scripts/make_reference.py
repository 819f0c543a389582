"""Writes docs/reference/*.md from the code and its tables. With --check it writes nothing and fails if a page is not current.

python scripts/make_reference.py [--check]
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from envspec.activation.process import process_environment
from envspec.activation.values import ScriptValues
from envspec.cli.codes import all_codes
from envspec.cli.main import cli
from envspec.data.architectures import known_archs
from envspec.data.gpus import gpus_of
from envspec.data.jit_variables import Kind, consumers
from envspec.diagnose.knowledge import knowledge
from envspec.profile.keys import ProfileKey, example_profile, profile_keys
from envspec.report.errors import Exit
from envspec.report.explanations import explained_codes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from scripts.coverage import coverage

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTICE = "<!-- Made by scripts/make_reference.py; changes by hand are lost. -->"


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    made = {
        "profile.md": _profile(),
        "cli.md": _cli(),
        "codes.md": _codes(),
        "environment.md": _environment(),
        "coverage.md": _coverage(),
    }
    return {name: "\n".join([NOTICE, "", *lines]).rstrip() + "\n" for name, lines in made.items()}


def main() -> int:
    outdated = []
    for name, text in pages().items():
        path = REFERENCE / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        outdated.append(name)
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print(f"{'outdated' if '--check' in sys.argv[1:] else 'written'}: {', '.join(outdated) or 'none'}")
    return 1 if outdated and "--check" in sys.argv[1:] else 0


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") or "-" for cell in row) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


_SECTIONS = {
    "": "Top level",
    "gpu": "`[gpu]`",
    "python": "`[python]`",
    "cuda": "`[cuda]`",
    "packages": "`[packages]`",
    "override": "`[[override]]`, any number",
    "index": "`[[index]]`, any number, in order of preference",
    "resolve": "`[resolve]`",
    "install": "`[install]`",
    "jobs": "`[jobs]`",
    "environment": "`[environment]`",
}


def _profile() -> list[str]:
    lines = [
        "# The profile",
        "",
        "A profile is a TOML file of at most 1 MiB in UTF-8. It is read strictly: an unknown key, a wrong type or a value",
        "that cannot be is an error (`profile-*` in [the codes](codes.md)). Only `[gpu]` and `[packages]` have to be there.",
        "How to write one: [a profile of your own](../how-to/write-a-profile.md).",
        "",
    ]
    for section, title in _SECTIONS.items():
        rows = [row for row in profile_keys() if row.key.partition(".")[0].removesuffix("[]") == section]
        if not section:
            rows = [row for row in profile_keys() if "." not in row.key]
        lines += [f"## {title}", ""]
        lines += [*_table(("key", "type", "default", "meaning"), (_key_row(row) for row in rows)), ""]
    lines += [
        "## In an editor",
        "",
        "`envspec/data/profile.schema.json` is a JSON schema, made from the types that this page is made from. Editors with a",
        "language server for TOML (taplo, Even Better TOML) complete and check keys with it, if the first line of the",
        "profile names it:",
        "",
        "```toml",
        "#:schema PATH/profile.schema.json",
        "```",
        "",
        "`envspec profiles --schema` prints where it lies in your installation. Versions, GPUs and names are checked when the",
        "profile is read, not by the schema.",
        "",
        "## Every key at once",
        "",
        "This shows the syntax; it is no environment that works.",
        "",
        "```toml",
        *example_profile().splitlines(),
        "```",
        "",
        "## Architectures",
        "",
        "What `gpu.arch` may be, and the first CUDA release whose compiler knows it.",
        "",
    ]
    lines += _table(
        ("architecture", "with suffix", "GPUs", "since CUDA"),
        (
            (
                _code(r.arch),
                ", ".join(_code(r.arch + v) for v in r.variants),
                ", ".join(gpus_of(r.arch)),
                r.since_cuda,
            )
            for r in known_archs()
        ),
    )
    return lines


def _key_row(row: ProfileKey) -> tuple[str, str, str, str]:
    default = "required" if row.required else row.default
    is_toml = re.fullmatch(r'"[^"]*"|\[.*\]|true|false', default) is not None
    key = row.key.partition(".")[2] or row.key
    return _code(key), row.type, _code(default) if is_toml else default, row.means


def _cli() -> list[str]:
    lines = [
        "# The command line",
        "",
        "`envspec --help` and `envspec COMMAND --help` show the same. PROFILE is a path, or the name of a shipped profile.",
        "",
        "## Exit codes",
        "",
        *_table(
            ("code", "meaning"),
            iter(
                [
                    (str(int(Exit.OK)), "it worked; for `check`: no errors were found"),
                    (
                        str(int(Exit.FINDINGS)),
                        "the answer is no: errors were found, or a stage of the build failed",
                    ),
                    (str(int(Exit.USAGE)), "the call or the profile is wrong"),
                    (str(int(Exit.EXTERNAL)), "network, disk, permissions: the same call may succeed later"),
                    (str(int(Exit.INTERNAL)), "a fault of envspec itself"),
                    (str(int(Exit.INTERRUPTED)), "interrupted; what was there before is untouched"),
                ]
            ),
        ),
        "",
        "`run` is replaced by its command, so its exit code is that of the command.",
        "",
        "## JSON",
        "",
        "With `--json` a command prints one JSON object on standard output, however it ends; progress, questions and",
        "warnings stay on standard error. An object with `error` is an error: a wrong call, a profile that cannot be read, an",
        "interruption. It has the fields of the text form (`code`, `what`, `where`, `why`, `fix`, `log`) and `exit`, the exit",
        "code; beside it, `findings` are those of the check that ended a build. All other objects are results. The schema",
        "of all of them is `envspec/data/report.schema.json`. `version` changes when a field changes its meaning or goes.",
        "",
    ]
    before = [p for p in cli.params if isinstance(p, click.Option) and p.name != "version"]
    lines += ["## Before the command", "", "    envspec -v COMMAND", ""]
    lines += [*_table(("option", "meaning"), (_option_row(option) for option in before)), ""]
    for name, command in cli.commands.items():
        lines += [*_command(name, command), ""]
    return lines


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    words = [f"envspec {name}", "[OPTIONS]" if options else ""]
    for argument in arguments:
        word = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
        words.append(argument.metavar or (word if argument.required else f"[{word}]"))
    yield f"## {name}"
    yield ""
    yield f"    {' '.join(filter(None, words))}"
    yield ""
    yield from inspect.cleandoc(command.help or "").splitlines()
    if options:
        yield ""
        yield from _table(("option", "meaning"), (_option_row(option) for option in options))


def _option_row(option: click.Option) -> tuple[str, str]:
    metavar = "" if option.is_flag or option.count else f" {option.metavar or (option.name or '').upper()}"
    default = f" Default: `{option.default}`." if option.show_default else ""
    return ", ".join(_code(opt + metavar) for opt in option.opts), f"{option.help}{default}"


def _codes() -> list[str]:
    return [
        "# Codes",
        "",
        "Every finding and every error begins with its code in square brackets: `error[torch-abi]: ...`. Codes are stable.",
        "`envspec explain CODE` prints the page behind a link.",
        "",
        "## Rules",
        "",
        "What `envspec check`, the check inside `envspec build`, `envspec doctor` (`host-*`, `env-*`) and `envspec probe`",
        "(`probe-*`) demand. A rule answers error, warning, note or unknown; errors end in exit code 1 unless, for the check,",
        "`--allow CODE` makes notes of them.",
        "",
        *_table(("code", "what is demanded"), ((_linked(c.code), c.means) for c in all_codes() if c.command)),
        "",
        "## Errors",
        "",
        "What ends a command, and the exit code it ends in.",
        "",
        *_table(
            ("code", "exit", "meaning"),
            ((_linked(c.code), str(int(c.exit.exit)), c.means) for c in all_codes() if not c.command),
        ),
    ]


def _coverage() -> list[str]:
    rows = coverage()
    families = {family.id: family for family in knowledge().families}
    prevented = sum(bool(row.prevented) for row in rows)
    earlier = sum(bool(row.prevented or row.check or row.audit or row.doctor or row.probe) for row in rows)
    lines = [
        "# Coverage",
        "",
        "Every cause that `envspec diagnose` knows by name, and what envspec does about it before it ends up in a log.",
        f"Of {len(rows)} causes {prevented} are prevented by how an environment is made, {earlier} are prevented or found",
        "before a server starts, and all are named in a log. Those without any mark show themselves only when a server runs:",
        "models, the network, what it is asked to do, and limits of the loader and of the GPU.",
        "",
        "From `scripts/coverage.toml`; the causes are described in `envspec/diagnose/data`. A probe runs what it compiled",
        "only where there is a GPU.",
        "",
    ]
    for kind in dict.fromkeys(family.kind for family in families.values()):
        chosen = [row for row in rows if families[row.family].kind is kind]
        lines += [f"## {kind.value.capitalize()}", ""]
        lines += _table(
            (
                "cause",
                "prevented by construction",
                "refused by `check`",
                "found by `audit`",
                "by `doctor`",
                "by `probe`",
            ),
            (
                (
                    _code(row.family),
                    row.prevented,
                    *(
                        ", ".join(map(_code, names))
                        for names in (row.check, row.audit, row.doctor, row.probe)
                    ),
                )
                for row in chosen
            ),
        )
        lines.append("")
    return lines


def _linked(code: str) -> str:
    return (
        f"[`{code}`](../../envspec/report/explanations/{code}.md)"
        if code in explained_codes()
        else _code(code)
    )


# Stand-ins for what is known only on a machine, and what the page shows in their place.
_GENERATION = Path("/DIR/.envspec/generations/7")
_TOOLCHAIN = "0123456789abcdef"
_SHOWN: Mapping[str, str] = {
    "/DIR/.envspec/generations/7": "GENERATION",
    f"/DIR/.envspec/toolchains/{_TOOLCHAIN}": "TOOLCHAIN",
    f"/DIR/.envspec/jit/{_TOOLCHAIN}": "JIT",
}
_OWN = {
    "CUDA_HOME": "the CUDA toolkit",
    "CUDA_PATH": "the same, for readers of the other name",
    "PATH": "these in front; what was there stays behind them",
    "LD_LIBRARY_PATH": "in front; inherited directories of driver stubs are dropped, empty elements too",
    "LIBRARY_PATH": "in front; where the host linker finds cudart and, by the stub, the driver",
    "MAX_JOBS": "compile jobs: no more than processors, nor than fit into the free memory by jobs.memory-per-job; "
    "kept if it is set already",
    "VIRTUAL_ENV": "the venv",
    "VIRTUAL_ENV_PROMPT": "the profile's name",
}


def _environment() -> list[str]:
    values = ScriptValues(
        toolchain=_TOOLCHAIN,
        arch="12.0a",
        memory_per_job=4 << 30,
        site_packages="lib/python3.12/site-packages",
        prompt="rtx-pro-6000",
    )
    inherited = {"PYTHONHOME": "x", "PYTHONPATH": "x", "MAX_JOBS": "computed"}
    made = process_environment(values, _GENERATION, inherited)
    by_reader = {row.variable: row for row in consumers()}
    lines = [
        "# The environment",
        "",
        'What `sglang_env.sh` and `envspec run` set, here for `gpu.arch = "12.0a"`. The variables of the profile\'s',
        "`[environment]` come last and win. `envspec_deactivate` makes every variable again what it was.",
        "",
        "In the values, below the output directory (default `out`):",
        "",
        "- GENERATION is `.envspec/generations/N`: one build.",
        "- TOOLCHAIN is `.envspec/toolchains/DIGEST`, JIT is `.envspec/jit/DIGEST`: they change with the CUDA toolkit alone.",
        "",
        "## envspec's own",
        "",
        *_table(
            ("variable", "value", "meaning"),
            ((_code(n), _code(_shown(made[n])), _OWN[n]) for n in sorted(made) if n not in by_reader),
        ),
        "",
        f"Unset: {', '.join(_code(n) for n in sorted(set(inherited) - set(made)))}; "
        "they would put other packages before the locked ones.",
        "",
        "## What the JIT compilers read",
        "",
        "From `envspec/data/jit_variables.toml`. A variable that an installed release does not know does no harm.",
        "",
    ]
    for kind, title in (
        (Kind.ARCH_LIST, "Architecture"),
        (Kind.CACHE_DIR, "Caches"),
        (Kind.PATH, "Paths"),
    ):
        rows = [row for row in consumers() if row.kind is kind]
        lines += [f"### {title}", ""]
        lines += _table(
            ("variable", "value", "read by", "seen in", "remark"),
            (
                (
                    _code(r.variable),
                    _code(_shown(made[r.variable])),
                    r.consumer,
                    f"{r.package} {r.version}, {_code(r.file)}",
                    r.note,
                )
                for r in rows
            ),
        )
        lines.append("")
    return lines


def _shown(value: str) -> str:
    for real, shown in _SHOWN.items():
        value = value.replace(real, shown)
    return value


if __name__ == "__main__":
    sys.exit(main())
