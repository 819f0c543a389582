"""The dynamic loader itself as the judge of the audit: does it load what the audit says it loads, and nothing else?"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from envspec.audit.environment import Environment
from envspec.audit.linkage import Linkage, LinkResult
from envspec.data.system_libraries import preloads

HERE = Path(__file__).parent
_IMPORTS = {"torch": "torch"}


class Answer(NamedTuple):
    """One file: what the audit thinks, and what the loader said ("" for loaded)."""

    name: str
    audit: bool
    loader: str

    @property
    def agrees(self) -> bool:
        """Whether both come to the same."""
        return self.audit == (not self.loader)


def ask_the_loader(environment: Environment, linkage: Linkage, names: Iterable[str]) -> list[Answer]:
    """Load the named files of an environment for real, each behind what the audit says is loaded before it."""
    behind: dict[tuple[str, ...], list[LinkResult]] = {}
    for name in names:
        one = linkage.results[name]
        parent = linkage.results[one.within.name] if one.within else one
        behind.setdefault(parent.preloaded, []).append(one)
    answers = []
    for packages, results in sorted(behind.items()):
        said = _load_all(environment, packages, {one.binary.path: _loaders(linkage, one) for one in results})
        answers += [Answer(one.binary.name, linkage.loads(one), said[one.binary.path]) for one in results]
    return answers


def _load_all(
    environment: Environment, packages: tuple[str, ...], files: Mapping[str, list[str]]
) -> dict[str, str]:
    rows = [row for row in preloads() if row.package in packages and row.package not in _IMPORTS]
    request = {
        "import": [_IMPORTS[package] for package in packages if package in _IMPORTS],
        "globally": _matching(environment, [p for row in rows for p in row.globally]),
        "locally": _matching(environment, [p for row in rows for p in row.locally]),
        "files": list(files.items()),
    }
    stubs = str(environment.cuda / "lib64" / "stubs")
    done = subprocess.run(
        [str(environment.venv / "bin" / "python"), str(HERE / "dlopen_each.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
            "LD_LIBRARY_PATH": os.pathsep.join([*environment.library_path, stubs]),
            "LD_BIND_NOW": "1",
        },
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


def _loaders(linkage: Linkage, result: LinkResult) -> list[str]:
    """The libraries behind which alone a file is ever loaded, in their order."""
    before: list[str] = []
    for binary in result.siblings if result.within is None else (result.within,):
        before += [*_loaders(linkage, linkage.results[binary.name]), binary.path]
    return before


def _matching(environment: Environment, patterns: list[str]) -> list[str]:
    site = environment.site
    found = []
    for pattern in patterns:
        names = [str(p.relative_to(site)) for p in site.glob(pattern)]
        found += [str(site / name) for name in sorted(fnmatch.filter(names, pattern))]
    return found
