"""Since which CUDA release the driver has a function, as the toolkit's own headers say.

`cudaTypedefs.h` declares a pointer type for each form of each function, named after the release that brought it:
`PFN_cuCtxCreate_v3020` is `cuCtxCreate_v2`, the second form, of CUDA 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

_HEADERS = (
    "cudaTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
    "cudaProfilerTypedefs.h",
)
_POINTER = re.compile(r"\bPFN_(cu[A-Z]\w*?)_v(\d{4,5})(?:_(ptds|ptsz))?\s*\)\s*\(", re.ASCII)
_SYMBOL = re.compile(r"(cu[A-Z]\w*?)(?:_v(\d))?(?:_(ptds|ptsz))?", re.ASCII)
_MAX_HEADER = 32 << 20


class DriverApi(msgspec.Struct, frozen=True):
    """Holds the releases of each function, ascending: `cuCtxCreate` -> (2000, 3020, 11040, 12050)."""

    forms: Mapping[str, tuple[int, ...]]

    def since(self, symbol: bytes) -> int | None:
        """Return the release (as 12040 for 12.4) that brought an exported driver symbol; None if the headers do not tell."""
        match = _SYMBOL.fullmatch(symbol.decode("latin-1"))
        if match is None:
            return None
        forms = self.forms.get(match[1], ())
        number = int(match[2] or 1)
        return forms[number - 1] if 0 < number <= len(forms) else None

    def newest(self, symbols: Iterable[bytes]) -> tuple[str, str] | None:
        """Find the symbol that came last and its CUDA release (`12.4`); None if nothing is known of any."""
        known = [(release, symbol) for symbol in symbols if (release := self.since(symbol)) is not None]
        if not known:
            return None
        release, symbol = max(known)
        return symbol.decode("latin-1"), f"{release // 1000}.{release % 1000 // 10}"


def read_driver_api(include: Path) -> DriverApi:
    """Read the headers in a toolkit's `include`. Without them nothing is known."""
    forms: dict[str, set[int]] = {}
    for header in _HEADERS:
        try:
            with (include / header).open(encoding="utf-8", errors="replace") as file:
                text = file.read(_MAX_HEADER)
        except OSError:
            continue
        for name, release, _ in _POINTER.findall(text):
            forms.setdefault(name, set()).add(int(release))
    return DriverApi({name: tuple(sorted(found)) for name, found in forms.items()})
