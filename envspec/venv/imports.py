"""Which modules are imported with a package, whatever happens: its `__init__.py` is read, nothing is run.

What stands in a function, behind a condition or in a `try` may be left undone, and does not count.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from envspec.fs import read_start

_MAX_SOURCE = 1 << 20
_MAX_MODULES = 500


class Imports(NamedTuple):
    """Holds dotted names of modules: those `always` imported with a package, and those that it only tries to import."""

    always: frozenset[str]
    tried: frozenset[str]


def imports_of(site: Path, package: str) -> Imports:
    """Read what importing the top-level package `package` imports of itself. At most 500 modules are read."""
    always: dict[str, None] = {}
    tried: set[str] = set()
    queue = [package]
    for module in queue:
        if module in always or len(always) >= _MAX_MODULES:
            continue
        always[module] = None
        file = site.joinpath(*module.split("."))
        is_package = (file / "__init__.py").is_file()
        tree = _parse(file / "__init__.py" if is_package else file.with_suffix(".py"))
        if tree is None:
            continue
        here = module if is_package else module.rpartition(".")[0]
        for name, certain in _imported(tree.body, here, True):
            if name.partition(".")[0] != package:
                continue
            if certain:
                parts = name.split(".")
                queue += [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
            else:
                tried.add(name)
    return Imports(frozenset(always), frozenset(tried - set(always)))


def _parse(file: Path) -> ast.Module | None:
    try:
        source = read_start(file, _MAX_SOURCE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imported(body: Iterable[ast.stmt], here: str, certain: bool) -> Iterator[tuple[str, bool]]:
    """Yield the names that statements import, absolute, and whether they do so in any case."""
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name, certain
        elif isinstance(statement, ast.ImportFrom):
            base = statement.module or ""
            if statement.level:
                parts = here.split(".")
                parts = parts[: len(parts) - statement.level + 1]
                base = ".".join([*parts, *filter(None, [base])])
            yield base, certain
            for alias in statement.names:
                yield f"{base}.{alias.name}", certain
        elif isinstance(statement, ast.Try):
            inner = certain and not statement.handlers
            yield from _imported(statement.body, here, inner)
            yield from _imported(statement.orelse, here, inner)
            yield from _imported(statement.finalbody, here, certain)
        elif isinstance(statement, ast.With):
            suppresses = any("suppress" in ast.dump(item.context_expr) for item in statement.items)
            yield from _imported(statement.body, here, certain and not suppresses)
