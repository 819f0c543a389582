"""The driver stub: a `libcuda.so.1` to link against where no driver is installed.

No wheel ships one, and an empty library will not do: the linker then drops the `DT_NEEDED` entry and the
module dies at its first driver call. So the stub exports every function that the toolkit's headers declare.
It is written byte by byte, not compiled: the same headers give the same file on every machine, whatever its
compiler. Each function returns CUDA_ERROR_STUB_LIBRARY, the number that cuda.h gives to "you loaded the stub
instead of the driver", so a stub that gets in front of a real driver says so.

Not done here: where the file is put and which links stand beside it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator

from envspec.report.errors import EnvspecError, StageError
from envspec.toolkit.shared_object import Processor, shared_object

SONAME = "libcuda.so.1"

CUDA_ERROR_STUB_LIBRARY = 34
"""The value of the enumerator in cuda.h; the same since CUDA 11.1."""

HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h")
"""The headers that declare driver functions, as far as a toolkit has them; the first one it must have."""

MAX_HEADER_CHARACTERS = 32 * 1024 * 1024
"""cuda.h 13.2 has 1.2 million; a file far beyond that is not a header."""

_PROCESSORS = {
    "x86_64": Processor(
        e_machine=62,
        page=0x1000,
        code=struct.pack("<BIB", 0xB8, CUDA_ERROR_STUB_LIBRARY, 0xC3),  # mov eax, 34; ret
        trap=b"\xcc",
    ),
    "aarch64": Processor(
        e_machine=183,
        page=0x10000,
        code=struct.pack("<II", 0x52800000 | CUDA_ERROR_STUB_LIBRARY << 5, 0xD65F03C0),  # mov w0, #34; ret
        trap=b"\0",
    ),
}

# Each pattern can restart only at a word that it does not contain, and none has two neighbouring repeats that
# match the same character: a scan of hostile text stays linear.
_COMMENT = re.compile(r"/[*/]")
_FUNCTION = re.compile(r"\b(?:CUDAAPI|CUresult)\s+(cu[A-Z]\w*)\s*\(", re.ASCII)
_INLINE = re.compile(r"\binline\s+CUresult\s+(?:CUDAAPI\s+)?(cu[A-Z]\w*)\s*\(", re.ASCII)
_TYPEDEF = re.compile(r"\s*typedef\b")
_ALIAS = re.compile(
    r"# ?define (?P<name>cu[A-Z]\w*)"
    r" (?:(?P<plain>cu[A-Z]\w*)|__CUDA_API_(?P<stream>PTDS|PTSZ) ?\( ?(?P<target>cu[A-Z]\w*) ?\))\Z",
    re.ASCII,
)


def driver_symbols(*headers: str) -> tuple[str, ...]:
    """Return every driver function that the texts of these headers declare, sorted, each once.

    Included are both sides of a versioning macro (`#define cuMemAlloc cuMemAlloc_v2`: programs built with
    older toolkits ask for the old name), the per-thread-default-stream variants (`_ptds`, `_ptsz`), and the
    declarations kept under `__CUDA_API_VERSION_INTERNAL`. Left out are function types and functions that a
    header itself defines inline. Preprocessor conditions are not evaluated: the few names that only another
    platform declares do no harm in a stub.
    """
    declared: set[str] = set()
    inline: set[str] = set()
    for header in headers:
        if len(header) > MAX_HEADER_CHARACTERS:
            raise StageError(
                "stub-header",
                "a driver header of the toolkit is too large to be one",
                why=f"{len(header)} characters; cuda.h has about a million",
                fix="check the nvidia-cuda-runtime wheel that the lock names",
            )
        directives, code = _split(_without_comments(header))
        for directive in directives:
            declared.update(_aliased(directive))
        for statement in re.split(r"[;{}]", code):
            if not _TYPEDEF.match(statement):
                declared.update(_FUNCTION.findall(statement))
                inline.update(_INLINE.findall(statement))
    return tuple(sorted(declared - inline))


def _aliased(directive: str) -> Iterator[str]:
    alias = _ALIAS.match(" ".join(directive.split()))
    if alias is None:
        return
    yield alias["name"]
    if alias["stream"] is None:
        yield alias["plain"]
    else:
        yield alias["target"]
        yield f"{alias['target']}_{alias['stream'].lower()}"


def _without_comments(text: str) -> str:
    """Return the text with each comment replaced by a space, as a compiler does. An unclosed one runs to the end."""
    kept: list[str] = []
    at = 0
    while opening := _COMMENT.search(text, at):
        start = opening.start()
        kept.append(text[at:start])
        # A line comment leaves its newline, which ends a directive.
        closing, skip = ("*/", 2) if opening[0] == "/*" else ("\n", 0)
        end = text.find(closing, start + 2)
        if end < 0:
            return "".join(kept)
        kept.append(" ")
        at = end + skip
    kept.append(text[at:])
    return "".join(kept)


def _split(text: str) -> tuple[list[str], str]:
    """Return the preprocessor directives, one string each, and the rest of the text."""
    directives: list[str] = []
    code: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        stripped = line.strip()
        if stripped.startswith("#"):
            directives.append(stripped)
        else:
            code.append(line)
    return directives, "\n".join(code)


def stub_library(symbols: Iterable[str], machine: str) -> bytes:
    """Return the bytes of the stub for this machine: SONAME libcuda.so.1, each of `symbols` a function in it.

    Order and repetition of `symbols` do not matter. Like in the driver, no symbol has a version. Raises StageError
    `stub-empty`, EnvspecError `machine-unsupported`.
    """
    if machine not in _PROCESSORS:
        raise EnvspecError("machine-unsupported", f"envspec knows x86_64 and aarch64, this is {machine}")
    names = sorted(set(symbols))
    if not names:
        raise StageError(
            "stub-empty",
            "the toolkit's headers declare no driver function",
            why="a module linked against an empty driver stub does not ask for libcuda.so.1 and dies later",
            fix="check that the profile's CUDA components include the runtime headers (cuda.h)",
        )
    return shared_object(SONAME, names, _PROCESSORS[machine])
