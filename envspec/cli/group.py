"""The list of commands, and a group that imports a command's module only when the command is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple, cast

import click


class Verb(NamedTuple):
    """Describes one command: the module that holds its `NAME_command`, and its line in `envspec --help`."""

    name: str
    module: str
    help: str


# The order is that of `envspec --help`. A test compares each line with the first sentence of the command's own help.
VERBS = (
    Verb("init", "init", "Write a profile for your GPU into FILE, with the lock of a shipped stack."),
    Verb("build", "build", "Build the environment of PROFILE, or say that it is up to date."),
    Verb("lock", "lock", "Write the lock of PROFILE, or update it and show what changed."),
    Verb("check", "check", "Check whether the locked set of PROFILE can work, before the download."),
    Verb("upgrade", "upgrade", "Upgrade PACKAGES (or all) of PROFILE: lock, check, show, ask, build."),
    Verb("why", "why", "Show what requires PACKAGE, up to PROFILE."),
    Verb("match", "match", "Show which releases of the extension PACKAGE fit which torch, by their symbols."),
    Verb("run", "run", "Run COMMAND inside the environment, without sourcing its script."),
    Verb("audit", "audit", "Check the installed files: do they link, and are they what was published?"),
    Verb("probe", "probe", "Compile what the environment's JIT compilers compile; on a GPU also run it."),
    Verb("verify", "verify", "Show what has changed in the environment since it was published, and by whom."),
    Verb("repair", "repair", "Put back exactly what has changed in the current environment."),
    Verb("doctor", "doctor", "Check this machine: is it fit for PROFILE, and does anything mislead compilers?"),
    Verb("diagnose", "diagnose", "Find the root cause of a failure in LOG, a file or - for standard input."),
    Verb("explain", "explain", "Explain CODE: what it means, how it shows and how to fix it. Without CODE, list all."),
    Verb("generations", "generations", "List the generations of an output, and the processes that use them."),
    Verb("rollback", "generations", "Make the previous generation current again, or generation NUMBER."),
    Verb("gc", "generations", "Remove old generations and toolchains that nothing needs and no process uses."),
    Verb("digest", "generations", "Print the environment digest: the same wherever the same environment was built."),
    Verb("diff", "diff", "Compare A with B: generation numbers, manifests, outputs, locks or profiles."),
    Verb("profiles", "profiles", "List the shipped profiles and stacks, and the GPUs that `envspec init` knows."),
)  # fmt: skip


class _Commands(Mapping[str, click.Command]):
    """The commands by name. To look one up imports its module; to list the names imports nothing."""

    def __init__(self) -> None:
        self._modules = {verb.name: verb.module for verb in VERBS}

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"envspec.cli.{self._modules[name]}")
        found: click.Command = getattr(module, f"{name}_command")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class LazyGroup(click.Group):
    """Knows its commands by the table: a command's module is imported when the command is called."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Nothing adds a command at run time, which is all that click needs a mutable mapping for.
        self.commands = cast("MutableMapping[str, click.Command]", _Commands())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb.name, verb.help) for verb in VERBS])
