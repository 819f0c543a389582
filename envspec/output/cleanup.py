"""Removing what is not needed: what interrupted commands left, generations that were not finished, unneeded toolchains.

Whoever calls these holds the output's lock.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

from envspec.fs import names_in, remove_tree
from envspec.host.processes import users_of
from envspec.output.generations import Generation, Output

_TEMPORARY = re.compile(
    r"\.(?:current|venv|cuda|envspec\.json|sglang_env\.sh|last|last-build\.log|holder|owner|stats\.msgpack)\.new"
)
"""What a write leaves that was cut short before its rename."""


@contextlib.contextmanager
def new_generation(output: Output) -> Iterator[Generation]:
    """Give a directory for the next generation, in an output without remains of earlier builds.

    If what is done inside fails, the directory is removed, and so are the toolchains that were added meanwhile: without a
    published generation nothing vouches for them.
    """
    sweep(output)
    remove_unneeded_toolchains(output, caches=False)
    before = output.toolchain_names()
    generation = output.begin()
    try:
        yield generation
    except BaseException:
        _discard(output, generation, set(output.toolchain_names()) - set(before))
        raise


def _discard(output: Output, generation: Generation, toolchains: Iterable[str]) -> None:
    """Remove a generation that was not published, and toolchains.

    One that was published in spite of all (the interruption came after the switch) is what people use: it stays.
    """
    current = output.current()
    if current is not None and current.number == generation.number:
        return
    remove_tree(generation.path)
    for name in toolchains:
        remove_tree(output.toolchains_dir / name)
    sweep(output)


def sweep(output: Output) -> None:
    """Remove what an interrupted command left: unfinished generations and toolchains, and the work directory.

    What `current` names stays, though its manifest may be lost, and what a process uses stays.
    """
    shown = output.shown()
    for number in output.numbers():
        found = output.generation(number)
        kept = found.manifest.is_file() or (shown is not None and shown.number == number)
        if not kept and not any(users_of(found.path)):
            remove_tree(found.path)
    for name in names_in(output.toolchains_dir):
        if name.startswith("new-"):
            remove_tree(output.toolchains_dir / name)
    remove_tree(output.work)
    for place in (output.root, output.state, *(output.generation(n).path for n in output.numbers())):
        for name in names_in(place):
            if _TEMPORARY.fullmatch(name):
                remove_tree(place / name)


def remove_unneeded_toolchains(output: Output, *, caches: bool) -> tuple[str, ...]:
    """Remove the toolchains that nothing needs, with `caches` also what JIT compilers keep for them. Return their names."""
    names = _unneeded_toolchains(output)
    for name in names:
        remove_tree(output.toolchains_dir / name)
        if caches:
            remove_tree(output.jit_dir / name)
    return names


def _unneeded_toolchains(output: Output) -> tuple[str, ...]:
    """Return the finished toolchains that no generation refers to and no process uses."""
    needed = set()
    for number in output.numbers():
        generation = output.generation(number)
        try:
            needed.add(generation.cuda.readlink().name)
        except FileNotFoundError:
            if generation.manifest.is_file():
                return ()  # which one it needs cannot be known
    return tuple(
        name
        for name in output.toolchain_names()
        if name not in needed
        and not any(users_of(output.toolchains_dir / name))
        and not any(users_of(output.jit_dir / name))
    )
