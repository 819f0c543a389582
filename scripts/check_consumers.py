"""Checks envspec/data/jit_variables.toml against installed packages.

    python scripts/check_consumers.py SITE_PACKAGES

For each row it looks for the variable's name in the file that the row names, and compares the version. It
prints what does not fit and exits with 1 if a name is gone. Run it when a profile moves to newer releases.
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from envspec.data.jit_variables import Consumer, consumers


def reads(row: Consumer, file: Path) -> bool:
    """Does the file hold the name, whole or made from the DSL's prefix?"""
    text = file.read_bytes() if file.is_file() else b""
    suffix = row.variable.removeprefix("CUTE_DSL_")
    return row.variable.encode() in text or f"{{prefix}}_{suffix}".encode() in text


def main(site_packages: Path) -> int:
    """Print a line for each row that does not fit."""
    found = distributions(path=[str(site_packages)])
    installed = {canonicalize_name(entry.metadata["Name"]): entry.version for entry in found}
    gone = 0
    for row in consumers():
        version = installed.get(canonicalize_name(row.package))
        if row.version == "later" or version is None:
            print(f"{row.variable}: not checked ({row.package} {version}, the row says {row.version})")
        elif not reads(row, site_packages / row.file):
            gone += 1
            print(f"{row.variable}: not in {row.file} of {row.package} {version}")
        elif version.partition("+")[0] != row.version:
            print(
                f"{row.variable}: still in {row.file} of {row.package} {version}; the row says {row.version}"
            )
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
