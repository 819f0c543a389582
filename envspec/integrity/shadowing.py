"""Which files that nobody locked change what is imported, executed, included or linked: those are errors, the others are not.

- In site-packages itself: `*.pth`, which Python runs at its start, `sitecustomize` and `usercustomize`, and modules that are called
  as one of the standard library.
- An extension module of this interpreter, or a package, beside a locked module of the same name: Python takes it first.
- In `bin`, which is first on PATH: a Python, and the names of the tools that JIT compilers call.
- Anything in CUDA_HOME, which belongs to envspec alone; the caller knows that.

Known gap: files that a package itself looks for, such as plugins in a directory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable

_AT_START = frozenset({"sitecustomize", "usercustomize"})
_COMPILERS = frozenset({"c++", "cc", "clang", "clang++", "g++", "gcc", "ninja", "nvcc", "ptxas"})
_TOOLS = frozenset({"ar", "as", "bash", "cmake", "env", "git", "ld", "nproc", "nvidia-smi", "sh", "which"})
_EXTENSION = re.compile(r"(?P<module>[^.]+)(?:\.cpython-(?P<minor>\d+)[^.]*|\.abi3)?\.so")


class Locked:
    """Says what was published, for questions about files that came later: the paths of the venv, its site-packages (`site`) and the
    programs of CUDA_HOME (`programs`). `minor` is Python's, as `3.11`."""

    def __init__(self, paths: Collection[str], site: str, programs: Iterable[str], minor: str) -> None:
        self._paths = paths
        self._site = site
        self._programs = _COMPILERS | _TOOLS | set(programs)
        self._tag = minor.replace(".", "")

    def shadowed_by(self, path: str) -> bool:
        """Tell whether an added file of the venv changes what is imported or executed."""
        directory, _, name = path.rpartition("/")
        if directory == "bin":
            return name in self._programs or name.startswith("python")
        if directory == self._site and self._changes_start(name):
            return True
        return self._before_locked(directory, name)

    def _changes_start(self, name: str) -> bool:
        module = name.partition(".")[0]
        return name.endswith(".pth") or (
            name.endswith((".py", ".so")) and (module in _AT_START or module in sys.stdlib_module_names)
        )

    def _before_locked(self, directory: str, name: str) -> bool:
        """Python looks for a package first, then for extension modules, then for source."""
        if name == "__init__.py":
            return f"{directory}.py" in self._paths
        found = _EXTENSION.fullmatch(name)
        if found is None or found["minor"] not in (None, self._tag):
            return False
        return f"{directory}/{found['module']}.py" in self._paths
