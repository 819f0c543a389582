"""A CUDA_HOME for the packages of a venv, with the driver stub that no wheel ships."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from envspec.fs import remove_tree
from envspec.report.errors import EnvspecError
from envspec.toolkit.layout import STUB, ToolkitTree, plan_tree
from envspec.toolkit.stub import HEADERS, driver_symbols, stub_library
from envspec.toolkit.write import changed_paths, put_back, remove_unknown, write_tree
from envspec.venv.owners import InstalledPackage


class Toolchain(msgspec.Struct, frozen=True):
    """Describes a CUDA_HOME on disk. `put_back` are the paths of it that were not as they had been written."""

    path: Path
    tree: ToolkitTree
    put_back: tuple[str, ...] = ()


def lay_toolchain(
    packages: Iterable[InstalledPackage], site_packages: Path, toolchains: Path, machine: str
) -> Toolchain:
    """Write the toolchain of these packages below `toolchains`, or put back what has changed of one that is there.

    Raises EnvspecError `toolkit-*`, `stub-*`, `machine-unsupported`.
    """
    tree = plan_tree(packages)
    stub = driver_stub(tree, site_packages, machine)
    at = toolchains / tree.name
    if at.is_dir():
        changed = changed_paths(tree, site_packages, at, stub)
        put_back(tree, site_packages, at, stub, changed, {})
        remove_unknown(at, {STUB, *(file.to for file in tree.files), *(link.to for link in tree.links)})
        return Toolchain(at, tree, tuple(changed))
    new = toolchains / f"new-{tree.name}"
    remove_tree(new)
    write_tree(tree, site_packages, new, stub)
    new.rename(at)
    return Toolchain(at, tree)


def driver_stub(tree: ToolkitTree, site_packages: Path, machine: str) -> bytes:
    """Return the driver stub for the toolkit's own headers. Raises EnvspecError `toolkit-no-cuda-h`."""
    sources = {f.to: f.source for f in tree.files}
    headers = [sources[at] for name in HEADERS if (at := f"include/{name}") in sources]
    if f"include/{HEADERS[0]}" not in sources:
        raise EnvspecError(
            "toolkit-no-cuda-h",
            "no package of this environment brings cuda.h, so no driver stub can be made",
            fix='add "cudart" to cuda.components of the profile',
        )
    texts = ((site_packages / header).read_text(encoding="utf-8", errors="replace") for header in headers)
    return stub_library(driver_symbols(*texts), machine)
