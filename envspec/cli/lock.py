"""`envspec lock`: the lock of a profile, without a build."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import msgspec

from envspec.cli.options import json_option, offline_option, profile_argument, python_option
from envspec.cli.progress import make_progress
from envspec.cli.show import show
from envspec.data.shipped import find_profile
from envspec.lock.ensure import LockMode, LockPolicy, describe_lock, ensure_lock, lock_notes
from envspec.lock.model import LockChange, OverrideRecord
from envspec.profile import read_profile
from envspec.uv.run import Uv
from envspec.venv.interpreter import choose_python


class Locked(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `lock`. `action` is `kept`, `made` or `changed`; `packages` is their number."""

    version: int = 1
    command: str = "lock"
    lock: str
    action: str
    packages: int
    changes: tuple[LockChange, ...]
    overrides: tuple[OverrideRecord, ...]


@click.command("lock")
@profile_argument
@python_option
@click.option(
    "--upgrade", is_flag=True, help="Upgrade every package to the newest version that the profile allows."
)
@click.option(
    "--upgrade-package", multiple=True, metavar="NAME", help="Upgrade this package; may be repeated."
)
@click.option("--locked", is_flag=True, help="Write nothing; fail if the lock does not match the profile.")
@json_option
@offline_option
def lock_command(
    profile: str,
    python: str | None,
    upgrade: bool,
    upgrade_package: tuple[str, ...],
    locked: bool,
    as_json: bool,
    offline: bool,
) -> None:
    """Write the lock of PROFILE, or update it and show what changed."""
    asked = read_profile(find_profile(profile))
    freed = () if upgrade else upgrade_package or None
    with make_progress().stage("lock") as stage, tempfile.TemporaryDirectory(prefix="envspec-") as work:
        uv = Uv(offline=offline, reporter=stage.detail)
        chosen = choose_python(asked, uv, Path(work), wanted=python)
        policy = LockPolicy(mode=LockMode.LOCKED if locked else LockMode.UPDATE, upgrade=freed)
        outcome = ensure_lock(asked, uv, chosen.path, policy)
        stage.result = f"{len(outcome.lock.packages)} packages, {describe_lock(outcome)}"
    result = Locked(
        lock=str(asked.lock_path),
        action=outcome.action,
        packages=len(outcome.lock.packages),
        changes=outcome.changes,
        overrides=outcome.lock.overrides,
    )
    show(result, lambda _: lock_notes(outcome), as_json=as_json)
