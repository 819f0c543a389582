"""The line that ties a Python process to the generation it was started from.

`out/venv` is a link that moves on with the next build. A process started as `out/venv/bin/python` would import what it
imports late from the next generation, and start its workers in it. Every venv therefore gets a `.pth` file, which Python
runs at its start: it resolves `sys.prefix`, `sys.executable` and `sys.path` once, so that they name the generation
itself. For a process started from the script or by `envspec run` it changes nothing: their paths are resolved already.
"""

from __future__ import annotations

NAME = "zzzz_envspec_generation.pth"
"""Python takes .pth files in the order of their names, and earlier ones add paths that have to be resolved too."""

_CODE = """\
import os, sys
def _real(path):
    return os.path.realpath(path) if path.startswith(prefix + os.sep) or path == prefix else path
prefix = sys.prefix
real = os.path.realpath(prefix)
if real != prefix:
    sys.path[:] = [_real(p) for p in sys.path]
    exe = sys.executable or ''
    if exe.startswith(prefix + os.sep):
        sys.executable = real + exe[len(prefix):]
    if sys.exec_prefix == prefix:
        sys.exec_prefix = real
    sys.prefix = real
    site = sys.modules.get('site')
    if site is not None:
        site.PREFIXES[:] = [_real(p) for p in site.PREFIXES]
"""


def pth_text() -> str:
    """The file's one line: Python runs a line of a .pth file only if it begins with `import`."""
    return f"import sys; exec({_CODE!r}, {{}})\n"
