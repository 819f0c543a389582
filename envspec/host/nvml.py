"""GPUs by NVML, if nvidia-ml-py is installed beside envspec. An optional door: nothing depends on it."""

from __future__ import annotations

from importlib import import_module

import msgspec


class NvmlGpu(msgspec.Struct, frozen=True):
    """Describes one GPU: its name, its compute capability, its memory in bytes."""

    name: str
    capability: tuple[int, int]
    memory: int


def gpus() -> tuple[NvmlGpu, ...] | None:
    """Return all GPUs that the driver shows this process, or None if it cannot be asked."""
    try:
        nvml = import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - an optional module of others may fail in any way
        return None
    try:
        found = []
        for number in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            name = nvml.nvmlDeviceGetName(handle)
            major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle).total
            text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
            found.append(NvmlGpu(text, (int(major), int(minor)), int(memory)))
        return tuple(found)
    except Exception:  # noqa: BLE001
        return None
    finally:
        nvml.nvmlShutdown()
