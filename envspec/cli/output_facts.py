"""What an output says of itself, and the driver of this machine: what a diagnosis relates a cause to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envspec.diagnose.environment import EnvironmentFacts
from envspec.host.driver import loaded_driver
from envspec.host.machine import Host
from envspec.integrity.drift import find_drift
from envspec.output.directory import existing
from envspec.output.manifest import read_head
from envspec.report.errors import EnvspecError, UsageError
from envspec.venv.owners import distributions


def facts_of_output(out: Path) -> EnvironmentFacts:
    """Return what an output, one of its generations or any venv says. Raises UsageError `output-missing`."""
    if not out.is_dir():
        raise UsageError(
            "output-missing",
            f"there is no directory {out}",
            where="--out",
            fix="name the output directory of a build: --out DIR",
        )
    facts = EnvironmentFacts(packages=packages_of(out), driver=loaded_driver(Host()) or "")
    try:
        head = read_head(out / "envspec.json")
    except EnvspecError:
        # A venv that envspec did not build, or a damaged output: its packages still tell something.
        return facts
    return msgspec.structs.replace(
        facts,
        gpu_arch=head.script.arch,
        built={package.name: package.version for package in head.packages},
        drifted=_has_drifted(out),
    )


def packages_of(out: Path) -> dict[str, str]:
    """Return names and versions of the distributions in the venv below an output directory, or in a venv itself."""
    for root in (out / "venv", out):
        sites = sorted(root.glob("lib/python3.*/site-packages"))
        if packages := {found.name: found.version for site in sites for found in distributions(site)}:
            return packages
    return {}


def _has_drifted(out: Path) -> bool:
    """Tell whether a quick verification finds any file that is not what was published."""
    try:
        output = existing(out)
        generation = output.current()
        return generation is not None and bool(find_drift(output, generation)[1])
    except (EnvspecError, OSError):
        return False
