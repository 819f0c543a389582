"""The NVIDIA driver as the kernel tells it, without asking any library."""

from __future__ import annotations

import re

from envspec.host.machine import Host

_VERSION = re.compile(r"Kernel Module[^\n]*?\s(\d{3,4}(?:\.\d{1,4}){1,3})\s")


def loaded_driver(host: Host) -> str | None:
    """Return the version of the kernel module that is loaded, such as `580.65.06`; None if there is none."""
    for line in (host.text("/proc/driver/nvidia/version") or "").splitlines():
        if found := _VERSION.search(line + " "):
            return found[1]
    return None
