"""The GPUs of this machine: their names and compute capabilities, and who says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from envspec.data.gpus import gpu_reported

if TYPE_CHECKING:
    from envspec.host.machine import Host

_PROC = "/proc/driver/nvidia/gpus"


class FoundGpu(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one GPU as this process sees it. `capability` is None where neither the driver nor the table of GPUs tells it."""

    name: str
    capability: tuple[int, int] | None
    source: str


def gpus_of_host(host: Host) -> Iterator[FoundGpu]:
    """Yield the GPUs that the driver shows: by NVML where it can be asked, else from /proc and the table of GPUs."""
    by_library = host.nvml()
    if by_library is not None:
        for gpu in by_library:
            yield FoundGpu(name=gpu.name, capability=gpu.capability, source="told by the driver (NVML)")
        return
    for address in host.names(_PROC):
        text = host.text(f"{_PROC}/{address}/information") or ""
        found = re.search(r"^Model:\s*(.+?)\s*$", text, re.MULTILINE)
        name = found[1] if found else f"the GPU at {address}"
        known = gpu_reported(name)
        yield FoundGpu(
            name=name,
            capability=known.capability if known else None,
            source=f"{_PROC}/{address}/information, and envspec's table of GPUs",
        )
