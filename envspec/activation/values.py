"""The values that an environment script is made of, each checked where it enters."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

from envspec.data.reserved_variables import settable
from envspec.report.errors import UsageError

SCRIPT = "sglang_env.sh"
"""The name of the environment script."""


class ScriptValues(msgspec.Struct, frozen=True, kw_only=True):
    """Says what distinguishes one environment from another.

    `toolchain` is the hexadecimal name of its CUDA_HOME; `arch` is dotted with its suffix ("12.0a"); `memory_per_job` and
    `memory_headroom` are in bytes; `site_packages` is relative to the venv; `variables` are the user's own, in the profile's
    order; `prompt` is a name to show. Raises UsageError `script-value` for what cannot stand in a script.
    """

    toolchain: str
    arch: str
    memory_per_job: int
    memory_headroom: int = 0
    site_packages: str
    variables: tuple[tuple[str, str], ...] = ()
    prompt: str = "envspec"

    def __post_init__(self) -> None:
        _require(re.fullmatch(r"[0-9a-f]{8,64}", self.toolchain), "toolchain", self.toolchain, "a hex digest")
        _require(re.fullmatch(r"[1-9][0-9]?\.[0-9][af]?", self.arch), "arch", self.arch, "like 12.0a")
        _require(
            0 < self.memory_per_job < 2**62, "memory_per_job", str(self.memory_per_job), "a positive number"
        )
        _require(
            0 <= self.memory_headroom < 2**62,
            "memory_headroom",
            str(self.memory_headroom),
            "zero or a positive number",
        )
        _require(
            _stays_below(self.site_packages),
            "site_packages",
            self.site_packages,
            "a relative path without '..', ':' or control characters",
        )
        _require(_writable(self.prompt), "prompt", self.prompt, "text without NUL")
        seen: set[str] = set()
        for name, value in self.variables:
            where = f"environment.{name}"
            _require(settable(name), where, name, "a variable that neither envspec nor the shell owns")
            _require(name not in seen, where, name, "set once")
            _require(_writable(value), where, value, "text without NUL")
            seen.add(name)

    @property
    def arch_number(self) -> str:
        """Return the architecture as nvcc writes it: 120a."""
        return self.arch.replace(".", "")


def _writable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _stays_below(path: str) -> bool:
    plain = PurePosixPath(path)
    return (
        path != ""
        and not plain.is_absolute()
        and ".." not in plain.parts
        and ":" not in path
        and path.isprintable()
        and str(plain) == path
    )


def _require(holds: object, key: str, found: str, wanted: str) -> None:
    if not holds:
        raise UsageError(
            "script-value",
            f"{key} cannot be {found!r} in an environment script",
            where=key,
            why=f"it has to be {wanted}",
            fix="change the profile's value",
        )
