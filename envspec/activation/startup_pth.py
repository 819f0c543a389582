"""The lines that tie a Python process to the generation it was started from.

`out/venv` is a link that moves on with the next build. A process started as `out/venv/bin/python` would import what it
imports late from the next generation, and start its workers in it. Every venv therefore gets two `.pth` files, which
Python runs at its start in the order of their names. The first one resolves `sys.prefix`, `sys.executable` and `sys.path`,
so that they name the generation itself, before any other `.pth` imports something through the link; the last one
resolves what the others have added to `sys.path`. For a process started from the script or by `envspec run` that changes
nothing: their paths are resolved already.

The first one also keeps the generation's `pyvenv.cfg` mapped, so that `envspec gc` sees who uses the generation whatever
the process makes of its title, its descriptors and its environment.

Known gaps: `python -S` runs no `.pth` (and sees no packages); `sys.argv[0]` of a script that was started through the link
names the link, so what starts itself again by that name starts in the generation that is current then.
"""

from __future__ import annotations

from pathlib import Path

FIRST = "0000_envspec_generation.pth"
LAST = "zzzz_envspec_generation.pth"

_FIRST = """\
import os, sys
prefix = sys.prefix
real = os.path.realpath(prefix)
kept = None
if '/.envspec/generations/' not in real:
    real = prefix
try:
    import mmap
    with open(os.path.join(real, 'pyvenv.cfg'), 'rb') as file:
        kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
except Exception:
    pass
sys._envspec_generation = (prefix, real, kept)
if real != prefix:
    def resolved(path):
        inside = isinstance(path, str) and (path == prefix or path.startswith(prefix + os.sep))
        return real + path[len(prefix):] if inside else path
    sys.path[:] = map(resolved, sys.path)
    sys.executable = resolved(sys.executable)
    sys.exec_prefix = resolved(sys.exec_prefix)
    sys.prefix = real
    site = sys.modules.get('site')
    if site is not None:
        site.PREFIXES[:] = map(resolved, site.PREFIXES)
"""

_LAST = """\
import os, sys
prefix, real, kept = getattr(sys, '_envspec_generation', ('', '', None))
if real != prefix:
    sys.path[:] = [real + p[len(prefix):] if p.startswith(prefix + os.sep) else p for p in sys.path]
    seen = set()
    sys.path[:] = [p for p in sys.path if not (p in seen or seen.add(p))]
"""


def pth_files() -> dict[str, str]:
    """Return the name and the text of each. Python runs a line of a .pth file only if it begins with `import`."""
    return {name: f"import sys; exec({code!r}, {{}})\n" for name, code in ((FIRST, _FIRST), (LAST, _LAST))}


def write_pth_files(site_packages: Path) -> None:
    """Tie the interpreter of a venv to its own generation."""
    for name, text in pth_files().items():
        (site_packages / name).write_text(text, encoding="utf-8")
