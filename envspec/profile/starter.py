"""A first profile of one's own: a shipped stack as text, for another GPU."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from envspec.data.gpus import Gpu
from envspec.data.shipped import shipped_profiles

_HEADROOM = "16 GiB"
"""What a machine whose GPU shares its memory keeps free of compile jobs; reports name it for GB10 (flashinfer 3634)."""
_LARGE_JOB = "8 GiB"
"""What a compile job takes for architectures from 12.0 on (flashinfer 3634 and 3899)."""


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a shipped profile that stands on its own. `title` is the first sentence of its heading comment."""

    name: str
    path: Path
    title: str


def stacks() -> tuple[Stack, ...]:
    """Return the shipped profiles that extend no other one, by name."""
    found = []
    for path in shipped_profiles():
        text = path.read_text(encoding="utf-8")
        if "extends" not in tomlkit.parse(text):
            found.append(Stack(name=path.stem, path=path, title=_title(text)))
    return tuple(found)


def _title(text: str) -> str:
    heading = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        heading.append(line.removeprefix("# "))
    return " ".join(heading).partition(". ")[0].partition(": ")[0].rstrip(".")


def starter(stack: Stack, gpu: Gpu, file: str, today: datetime.date) -> str:
    """Return the text of a profile: `stack` for `gpu`, with the stack's own comments. `file` is the name it is written under."""
    body = stack.path.read_text(encoding="utf-8").splitlines(keepends=True)
    while body and body[0].startswith("#"):
        body.pop(0)
    document: Any = tomlkit.parse("".join(body))
    document["gpu"]["arch"] = str(gpu.compiles_for)
    if gpu.capability >= (12, 0) or gpu.unified:
        jobs = document.setdefault("jobs", tomlkit.table())
        if gpu.capability >= (12, 0):
            jobs["memory-per-job"] = _LARGE_JOB
        if gpu.unified:
            jobs["memory-headroom"] = _HEADROOM
    heading = [
        f"# {stack.title}",
        f"# for: {gpu.name} (compute capability {gpu.arch})",
        f"# Written by envspec init from the stack {stack.name} on {today.isoformat()}. Change what you like.",
        "#",
        f"#   envspec build {file}",
        "#   source out/sglang_env.sh",
        "",
    ]
    return "\n".join(heading) + tomlkit.dumps(document)
