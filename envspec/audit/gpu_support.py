"""What GPU code does on a GPU it was or was not compiled for: the rules of CUDA's compatibility, and nothing else.

Known gap: SASS of the embedded (Tegra) and the other GPUs of one major is not exchangeable; no table here says which are.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from envspec.audit.fatbin import GpuCode
from envspec.data.architectures import Arch


class Mode(Enum):
    """Says how code gets to run, best first."""

    NATIVE = "native"
    COMPATIBLE = "compatible"
    PTX = "PTX-JIT"
    NONE = "no kernel image"


class Support(NamedTuple):
    """Holds the mode, the code that is used, and why it may be used."""

    mode: Mode
    code: GpuCode | None
    why: str


NOTHING = Support(Mode.NONE, None, "")
_RANK = {mode: rank for rank, mode in enumerate(Mode)}


def support_of(code: GpuCode, gpu: Arch) -> Support:
    """Tell what one piece of code does on a GPU. `gpu`'s own variant says what may be used, which every GPU of it can run."""
    arch = code.arch
    same = (arch.major, arch.minor) == (gpu.major, gpu.minor)
    older_in_major = arch.major == gpu.major and arch.minor <= gpu.minor
    if code.ptx is None:
        if not arch.runs_on((gpu.major, gpu.minor)):
            return NOTHING
        if same:
            why = {"a": "compiled for exactly this architecture", "f": "compiled for its family"}
            return Support(Mode.NATIVE, code, why.get(arch.variant, "compiled for it"))
        where = "its whole family" if arch.variant == "f" else f"later minors of major {arch.major}"
        return Support(Mode.COMPATIBLE, code, f"{code} runs on {where}")
    if same or (arch.variant == "f" and older_in_major):
        return Support(Mode.PTX, code, f"{code} is for it")
    if not arch.variant and (arch.major, arch.minor) <= (gpu.major, gpu.minor):
        return Support(Mode.PTX, code, f"{code} runs on everything later")
    return NOTHING


def best_support(module: Iterable[GpuCode], gpu: Arch) -> Support:
    """Find the best that any code of a module does on a GPU; of equals the latest."""
    found = [support_of(code, gpu) for code in module]
    usable = [one for one in found if one.code is not None]
    return min(
        usable,
        key=lambda one: (_RANK[one.mode], *(-n for n in _number(one))),
        default=NOTHING,
    )


def _number(support: Support) -> tuple[int, int]:
    assert support.code is not None
    return support.code.arch.major, support.code.arch.minor
