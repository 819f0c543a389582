"""Byte code that is not what its source compiles to: Python runs it all the same, as long as its header fits the source.

Compared by the environment's own interpreter, without its packages: only that one knows its byte code. Byte code whose header
does not fit is left aside: Python compiles the source anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from envspec.host.commands import Command, run

_SECONDS = 600
_COMPARE = """
import importlib.util, json, marshal, os, re, sys, warnings
warnings.simplefilter('ignore')
sys.setrecursionlimit(10000)
root, found = sys.argv[1], {'wrong': [], 'strange': []}
name = re.compile(r'(.+)\\.cpython-\\d+[^.]*(?:\\.opt-(\\d))?\\.pyc')
def same(path, source, level):
    with open(path, 'rb') as file:
        data = file.read()
    with open(source, 'rb') as file:
        text = file.read()
        info = os.fstat(file.fileno())
    if len(data) < 16 or data[:4] != importlib.util.MAGIC_NUMBER:
        return True
    flags = int.from_bytes(data[4:8], 'little')
    if flags == 0:
        fits = [int(info.st_mtime) & 0xFFFFFFFF, len(text) & 0xFFFFFFFF]
        if [int.from_bytes(data[n:n + 4], 'little') for n in (8, 12)] != fits:
            return True
    elif flags == 3 and data[8:16] != importlib.util.source_hash(text):
        return True
    try:
        return marshal.loads(data[16:]) == compile(text, source, 'exec', dont_inherit=True, optimize=level)
    except Exception:
        return False
for directory, below, files in os.walk(root):
    if os.path.basename(directory) != '__pycache__':
        continue
    for file in files:
        path = os.path.join(directory, file)
        match = name.fullmatch(file)
        source = os.path.join(os.path.dirname(directory), match[1] + '.py') if match else ''
        if not os.path.isfile(source) or os.path.islink(path):
            found['strange'].append(os.path.relpath(path, root))
        elif '-pytest-' not in file and not same(path, source, int(match[2] or 0)):
            found['wrong'].append(os.path.relpath(path, root))
print(json.dumps(found))
"""


class ByteCode(msgspec.Struct, frozen=True):
    """Holds paths in the venv: `wrong` is not what its source compiles to, `strange` belongs to no source at all."""

    wrong: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()


def compare_bytecode(venv: Path) -> ByteCode | None:
    """Compare the byte code below a venv with its sources. None where its interpreter could not do it."""
    python = str(venv / "bin" / "python")
    call = Command(arguments=(python, "-I", "-S", "-B", "-c", _COMPARE, str(venv)), environment=os.environ)
    try:
        done = run(call, seconds=_SECONDS)
        found = msgspec.json.decode(done.out, type=ByteCode)
    except (OSError, msgspec.DecodeError):
        return None
    return ByteCode(tuple(sorted(found.wrong)), tuple(sorted(found.strange)))


def remove_bytecode(source: Path) -> None:
    """Remove what Python may have compiled from a source file."""
    if source.suffix != ".py":
        return
    cache = source.parent / "__pycache__"
    if not cache.is_symlink():
        for path in cache.glob(f"{_escaped(source.stem)}.cpython-*.pyc"):
            path.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    import glob

    return glob.escape(text)
