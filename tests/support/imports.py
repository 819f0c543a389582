"""Which modules of the package import which, read from their syntax trees: wherever in a file the import stands."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "envspec"
# They run with the Python of an environment and are no modules of the package.
SCRIPTS = PACKAGE / "probe" / "scripts"


@functools.cache
def imports() -> dict[str, set[str]]:
    """Each module by its dotted name, and the modules of the package that it imports."""
    files = {_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if SCRIPTS not in path.parents}
    return {
        module: {name for name in _imported(path, set(files)) if name != module}
        for module, path in files.items()
    }


def room_of(module: str) -> str:
    """The room of a module; empty for the package itself and what starts it."""
    room = module.split(".")[1] if "." in module else ""
    return "" if room == "__main__" else room


def rooms() -> set[str]:
    """Every room, the loose modules among them."""
    return {room_of(module) for module in imports()} - {""}


def loose_modules() -> list[str]:
    """The modules that stand beside the rooms."""
    return sorted(p.name for p in PACKAGE.glob("*.py") if p.name not in ("__init__.py", "__main__.py"))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from {inner if inner in known else node.module} & known
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & known
