"""Directories: where the environment goes, where caches and temporary files lie."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from envspec.data.caller import CacheDirectory, cache_directories
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.machine import Host
from envspec.report.errors import EnvspecError
from envspec.report.findings import Finding, error, note, warning
from envspec.venv.disk_space import size_of_environment

_GIB = 1 << 30
_TIGHT = 2 * _GIB
"""For what JIT compilers make and keep: envspec's own judgement, no measurement."""
_FULL = _GIB // 2


def gib(number: int) -> str:
    """Return a number of bytes as text: `3.2 GiB`."""
    return f"{number / _GIB:.1f} GiB"


@CHECKS.rule("The disk of the output directory has room for an environment and for what the JITs compile.")
def host_disk(host: Host, wanted: Wanted) -> Iterator[Finding]:
    space = host.space(wanted.out)
    if space is None:
        return
    built = host.exists(f"{wanted.out}/envspec.json")
    needed = _TIGHT if built else size_of_environment(wanted.profile) + _TIGHT
    evidence = [f"{host.nearest(wanted.out)}: {gib(space.free)} free of {gib(space.total)}"]
    if space.free < _FULL:
        yield error(
            "host-disk", wanted.out, f"the disk of {wanted.out} is full", evidence=evidence,
            fix="free space (envspec gc removes old generations), or name another --out",
        )  # fmt: skip
    elif space.free < needed:
        whose = "this profile" if wanted.profile is not None else "the first shipped profile"
        for_what = "what the JITs compile" if built else f"the environment of {whose}"
        yield warning(
            "host-disk",
            wanted.out,
            f"{gib(space.free)} are free for {wanted.out}; {for_what} wants {gib(needed)}",
            evidence=evidence,
            fix="free space (envspec gc removes old generations), or name another --out",
        )
    mount = host.mount(wanted.out)
    if mount is not None and "noexec" in mount.options:
        yield error(
            "host-disk",
            wanted.out,
            f"{mount.point} is mounted noexec: neither Python nor a compiled kernel can be loaded from {wanted.out}",
            fix="name an --out on another file system",
        )
    if mount is not None and mount.over_network:
        yield warning(
            "host-disk",
            wanted.out,
            f"{wanted.out} lies on {mount.type}: imports and compilers are slow there, and locks may not hold",
            evidence=[f"{mount.point} is a {mount.type} mount"],
            fix="name an --out on a local disk",
        )


@CHECKS.rule("The directory for temporary files can be written to, has room, and is not mounted noexec.")
def host_tmp(host: Host, wanted: Wanted) -> Iterator[Finding]:
    path = host.environ.get("TMPDIR") or "/tmp"
    subject = "TMPDIR" if host.environ.get("TMPDIR") else path
    if not host.is_dir(path):
        yield error(
            "host-tmp", subject, f"{path} is not there: compilers have nowhere to write",
            fix="set TMPDIR to a directory that exists",
        )  # fmt: skip
        return
    if not host.writable(path):
        yield error(
            "host-tmp", subject, f"{path} cannot be written to: compilers fail",
            fix="set TMPDIR to a directory of yours",
        )  # fmt: skip
        return
    mount = host.mount(path)
    if mount is not None and "noexec" in mount.options:
        yield warning(
            "host-tmp",
            subject,
            f"{path} is mounted noexec: a JIT that loads what it just compiled there fails",
            evidence=[
                f"{mount.point} is a {mount.type} mount",
                "seen as: failed to map segment from shared object",
            ],
            fix="set TMPDIR to a directory on another file system",
        )
    space = host.space(path)
    if space is not None and space.free < _TIGHT:
        yield (error if space.free < _FULL // 4 else warning)(
            "host-tmp", subject, f"{gib(space.free)} are free in {path}; large kernels take more while they are compiled",
            fix="free space there, or set TMPDIR to another disk",
        )  # fmt: skip


@CHECKS.rule(
    "Cache directories are no dangling links, can be written to, and lie on a local, executable disk with room."
)
def host_caches(host: Host, wanted: Wanted) -> Iterator[Finding]:
    home = host.environ.get("HOME", "")
    if not home.startswith("/"):
        yield warning(
            "host-caches",
            "HOME",
            "HOME is not set: caches go to where each program thinks best",
            fix="set HOME",
        )
        return
    if host.exists(home) and not host.writable(home):
        yield warning(
            "host-caches", home, f"{home} cannot be written to, and caches lie below it",
            fix="set HOME, or XDG_CACHE_HOME and UV_CACHE_DIR, to a directory of yours",
        )  # fmt: skip
    looked_at: set[str] = set()
    for cache in cache_directories():
        path = _place(host, wanted, cache, home)
        if path.startswith("/") and path not in looked_at:
            looked_at.add(path)
            yield from _cache(host, path, cache)


def _place(host: Host, wanted: Wanted, cache: CacheDirectory, home: str) -> str:
    if cache.variable == "UV_CACHE_DIR":  # uv.toml may name it, too, which only uv reads
        with contextlib.suppress(EnvspecError):
            return wanted.uv.cache_directory()
    return host.environ.get(cache.variable) or f"{home}/{cache.below}"


def _cache(host: Host, path: str, cache: CacheDirectory) -> Iterator[Finding]:
    serious = error if cache.needed else warning
    elsewhere = f"set {cache.variable} to a directory of yours on a local disk"
    if host.is_link(path) and not host.exists(path):
        yield serious(
            "host-caches",
            path,
            f"{path} is a dangling link: what makes its directory fails (File exists)",
            evidence=[f"it leads to {host.real(path)}"],
            fix=f"mkdir -p {host.real(path)}, or remove the link",
        )
        return
    if not host.exists(path):
        return
    if not host.is_dir(path):
        yield serious("host-caches", path, f"{path} is not a directory", fix=f"move it away, or {elsewhere}")
        return
    if not host.writable(path):
        yield serious(
            "host-caches",
            path,
            f"{path} cannot be written to",
            fix=f"chown it (was it made by root?), or {elsewhere}",
        )
    mount = host.mount(path)
    if mount is not None and "noexec" in mount.options and cache.holds == "programs":
        yield warning(
            "host-caches",
            path,
            f"{path} is mounted noexec: kernels that are kept there cannot be loaded",
            fix=elsewhere,
        )
    if mount is not None and mount.over_network and cache.holds == "programs":
        yield note(
            "host-caches", path, f"{path} lies on {mount.type}, where file locks may not hold", fix=elsewhere
        )
    space = host.space(path)
    if space is not None and space.free < _FULL:
        yield warning(
            "host-caches", path, f"the disk of {path} is full ({gib(space.free)} free)", fix=elsewhere
        )
