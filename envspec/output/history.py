"""`envspec generations`, `rollback`, `gc`, `digest`: what an output holds, and which of it is current."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from envspec.fs import remove_tree
from envspec.host.processes import unseen, users_of
from envspec.output.cleanup import remove_unneeded_toolchains, sweep
from envspec.output.directory import existing, unbuilt
from envspec.output.generations import Generation, Output
from envspec.output.lock import locked
from envspec.output.manifest import read_head
from envspec.report.errors import EnvspecError, UsageError


class GenerationRow(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one generation: `users` are processes that run from it, `problem` what is wrong with its manifest."""

    number: int
    current: bool
    built: str = ""
    profile: str = ""
    digest: str = ""
    toolchain: str = ""
    packages: int = 0
    users: tuple[str, ...] = ()
    problem: str = ""


class GenerationList(msgspec.Struct, frozen=True, kw_only=True):
    """Holds all generations, newest first; `version` is the version of the JSON form."""

    version: int = 1
    generations: tuple[GenerationRow, ...]


class GcResult(msgspec.Struct, frozen=True, kw_only=True):
    """Says what was removed and what was kept because processes use it; `version` is the version of the JSON form."""

    version: int = 1
    removed: tuple[int, ...]
    in_use: tuple[GenerationRow, ...]
    toolchains: tuple[str, ...]
    unseen: int = 0
    """Processes of which this user cannot see what they use."""


def list_generations(out: Path) -> GenerationList:
    """Return every finished generation, newest first."""
    output = existing(out)
    current = output.current()
    rows = []
    for number in reversed(output.numbers()):
        generation = output.generation(number)
        if generation.manifest.is_file():
            rows.append(_row(generation, current is not None and current.number == number))
    return GenerationList(generations=tuple(rows))


def _row(generation: Generation, current: bool) -> GenerationRow:
    users = tuple(str(user) for user in users_of(generation.path))
    try:
        head = read_head(generation.manifest)
    except EnvspecError as error:
        return GenerationRow(number=generation.number, current=current, users=users, problem=error.what)
    return GenerationRow(
        number=generation.number,
        current=current,
        built=head.built,
        profile=head.profile,
        digest=head.digest,
        toolchain=head.script.toolchain,
        packages=len(head.packages),
        users=users,
    )


def rollback(out: Path, number: int | None, waiting: Callable[[str], None]) -> int:
    """Make an older generation current: `number`, or the one before the current. Raises UsageError `no-generation`."""
    output = existing(out)
    with locked(output, waiting):
        finished = output.finished()
        current = output.current()
        if not finished:
            raise unbuilt(out)
        if number is None:
            older = [n for n in finished if current is None or n < current.number]
            if not older:
                raise UsageError(
                    "no-generation", f"there is no generation before {finished[0]}", where=str(out)
                )
            number = older[-1]
        if number not in finished:
            raise UsageError(
                "no-generation",
                f"there is no generation {number}",
                where=str(out),
                fix=f"it has {', '.join(map(str, finished))}",
            )
        generation = output.generation(number)
        _require_whole(output, generation)
        output.switch(generation)
    return number


def _require_whole(output: Output, generation: Generation) -> None:
    """Refuse to show a generation whose main parts are gone."""
    head = read_head(generation.manifest)
    parts = {
        "its toolchain": output.toolchains_dir / head.script.toolchain / "bin" / "nvcc",
        "its link to CUDA_HOME": generation.cuda / "bin" / "nvcc",
        "its script": generation.script,
        "its Python": generation.venv / "bin" / "python",
    }
    for name, path in parts.items():
        if not path.exists():
            raise UsageError(
                "no-generation",
                f"generation {generation.number} has lost {name}",
                where=str(path),
                fix="build it again, from the profile and lock that it was built from",
            )


def collect(out: Path, keep: int, waiting: Callable[[str], None]) -> GcResult:
    """Remove all but the current and the newest `keep` generations, and what only they needed.

    Nothing is taken from under a process that still uses it: what processes run from, have open or have in their
    environment stays, and is reported.
    """
    output = existing(out)
    with locked(output, waiting):
        sweep(output)
        current = output.current()
        numbers = [n for n in output.finished() if current is None or n != current.number]
        removed, in_use = [], []
        for number in numbers[: max(0, len(numbers) - keep)]:
            generation = output.generation(number)
            row = _row(generation, False)
            if row.users:
                in_use.append(row)
                continue
            # The manifest goes first: a removal that is interrupted leaves an unfinished generation, which is swept.
            generation.manifest.unlink(missing_ok=True)
            remove_tree(generation.path)
            removed.append(number)
        toolchains = remove_unneeded_toolchains(output, caches=True)
        return GcResult(removed=tuple(removed), in_use=tuple(in_use), toolchains=toolchains, unseen=unseen())
