"""`envspec init`: write a first profile."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from envspec.cli.options import json_option
from envspec.cli.show import show
from envspec.data.gpus import Gpu, gpu_reported, gpu_typed, known_gpus
from envspec.fs import write_synced
from envspec.host.gpus import gpus_of_host
from envspec.host.machine import Host
from envspec.lock.text import read_lock, write_lock
from envspec.profile import read_profile
from envspec.profile.starter import Stack, stacks, starter
from envspec.profile.strict import nearest
from envspec.report.errors import UsageError


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `init`: the profile that was written. `lock` is empty where the stack's lock does not fit it."""

    version: int = 1
    command: str = "init"
    profile: str
    lock: str
    stack: str
    gpu: str
    arch: str


@click.command("init")
@click.argument("file", default="envspec.toml", type=click.Path(path_type=Path))
@click.option(
    "--gpu",
    "gpu_name",
    default="auto",
    show_default=True,
    metavar="NAME|auto",
    help='The GPU by its name, such as "RTX 5090"; auto asks this machine.',
)
@click.option(
    "--stack", "stack_name", default="sglang", show_default=True, metavar="NAME", help="What is to be served."
)
@json_option
def init_command(file: Path, gpu_name: str, stack_name: str, as_json: bool) -> None:
    """Write a profile for your GPU into FILE, with the lock of a shipped stack.

    `envspec profiles` lists the stacks and the GPUs. An existing FILE is never overwritten.
    """
    if file.suffix != ".toml":
        raise UsageError(
            "profile-file-name",
            f"{str(file)!r} does not end in .toml",
            fix=f"envspec init {file.with_name(file.name + '.toml')}",
        )
    stack = _stack(stack_name)
    gpu = _gpu_of_this_machine() if gpu_name == "auto" else _gpu(gpu_name)
    if file.exists() or file.is_symlink():
        raise UsageError("profile-exists", f"{file} is there already", fix="name another file, or remove it")
    text = starter(stack, gpu, str(file), datetime.date.today())
    write_synced(file, text.encode("utf-8"))
    lock = read_lock(stack.path.with_suffix(".lock"))
    profile = read_profile(file)
    # The GPU does not decide which packages are taken: the stack's lock is this profile's lock.
    fits = lock is not None and lock.profile_digest == profile.lock_digest
    if lock is not None and fits:
        write_lock(profile.lock_path, msgspec.structs.replace(lock, profile_name=file.name))
    started = Started(
        profile=str(file),
        lock=str(profile.lock_path) if fits else "",
        stack=stack.name,
        gpu=gpu.name,
        arch=str(gpu.compiles_for),
    )
    show(started, _lines, as_json=as_json)


def _lines(started: Started) -> Iterator[str]:
    """Yield what was written, and the line that a user types next."""
    file = started.profile
    yield f"{file}: {started.stack} for {started.gpu} ({started.arch}); next: envspec build {shlex.quote(file)}"


def _stack(name: str) -> Stack:
    found = {stack.name: stack for stack in stacks()}
    if name not in found:
        raise UsageError("unknown-stack", f"there is no stack {name!r}", fix=nearest(name, list(found)))
    return found[name]


def _gpu(name: str) -> Gpu:
    found = gpu_typed(name)
    if found is None:
        names = [word for row in known_gpus() for word in (row.name, *row.also)]
        raise UsageError(
            "unknown-gpu",
            f"no GPU of the table is called {name!r}",
            where="--gpu",
            fix=f"{nearest(name, names)}; or write gpu.arch by hand: nvidia-smi --query-gpu=compute_cap --format=csv",
        )
    return found


def _gpu_of_this_machine() -> Gpu:
    seen = [gpu.name for gpu in gpus_of_host(Host())]
    found = [row for row in map(gpu_reported, seen) if row is not None]
    if not seen:
        raise UsageError(
            "unknown-gpu",
            "no GPU can be seen on this machine",
            where="--gpu auto",
            fix='name the GPU that will be served from: --gpu "RTX PRO 6000" (envspec profiles lists them)',
        )
    if len({row.arch for row in found}) != 1 or len(found) != len(seen):
        raise UsageError(
            "unknown-gpu",
            f"this machine's GPUs do not decide it: {', '.join(seen)}",
            where="--gpu auto",
            fix='name the one to compile for: --gpu "RTX PRO 6000" (envspec profiles lists them)',
        )
    return found[0]
