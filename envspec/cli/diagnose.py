"""`envspec diagnose`: the engine of `envspec/diagnose` on a file or on standard input, with what is known of an output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from envspec.diagnose import Diagnosis, diagnose
from envspec.report.errors import UsageError

if TYPE_CHECKING:
    from envspec.diagnose.environment import EnvironmentFacts


def run_diagnose(log: str, out: Path | None) -> Diagnosis:
    """Read a log (`-`: standard input). Raises UsageError `log-unreadable`, or `output-missing` for an `out` that is none."""
    facts = facts_for(out) if out is not None else None
    try:
        if log == "-":
            return diagnose(sys.stdin.buffer, facts=facts)
        with Path(log).open("rb") as stream:
            return diagnose(stream, facts=facts)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            "log-unreadable", f"cannot read {log}: {reason}", fix="name a file, or - for standard input"
        ) from None


def facts_for(out: Path) -> EnvironmentFacts:
    """What an output, one of its generations or any venv says of itself, and the driver of this machine."""
    import msgspec

    from envspec.diagnose.environment import facts_of
    from envspec.host.driver import loaded_driver
    from envspec.host.machine import Host
    from envspec.output.manifest import read_head
    from envspec.report.errors import EnvspecError

    if not out.is_dir():
        raise UsageError(
            "output-missing",
            f"there is no directory {out}",
            where="--out",
            fix="name the output directory of a build: --out DIR",
        )
    facts = msgspec.structs.replace(facts_of(out), driver=loaded_driver(Host()) or "")
    try:
        head = read_head(out / "envspec.json")
    except EnvspecError:
        return (
            facts  # a venv that envspec did not build, or a damaged output: its packages still tell something
        )
    return msgspec.structs.replace(
        facts,
        gpu_arch=head.script.arch,
        built={package.name: package.version for package in head.packages},
        drifted=_has_drifted(out),
    )


def _has_drifted(out: Path) -> bool:
    """Whether a quick verification finds any file that is not what was published."""
    from envspec.integrity.drift import find_drift
    from envspec.output.claim import existing
    from envspec.report.errors import EnvspecError

    try:
        output = existing(out)
        generation = output.current()
        return generation is not None and bool(find_drift(output, generation)[1])
    except (EnvspecError, OSError):
        return False
