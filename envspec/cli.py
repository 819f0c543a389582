"""The command line: parses, calls, renders, sets the exit code. It decides nothing.

Each verb imports what it needs when it runs, so that `envspec --help` and short verbs start quickly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from envspec import __version__
from envspec.errors import EnvspecError, Exit

if TYPE_CHECKING:
    from envspec.findings import Report
    from envspec.lock.ensure import LockMode

F = TypeVar("F", bound=Callable[..., object])

_profile = click.argument("profile")
_out = click.option(
    "--out",
    default="out",
    show_default=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The output directory.",
)
_python = click.option(
    "--python", metavar="PATH|VERSION", help="Use this interpreter instead of the preferred one."
)
_offline = click.option("--offline", is_flag=True, help="Use nothing but what is in the caches.")

_json = click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
_allow = click.option(
    "--allow", multiple=True, metavar="CODE", help="Turn errors of this code into notes; may be repeated."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="envspec")
def cli() -> None:
    """Turn a TOML profile into a Python environment whose kernels compile."""


@cli.command()
@_profile
@_out
@_python
@click.option("--locked", is_flag=True, help="Fail if the lock does not match the profile.")
@click.option("--frozen", is_flag=True, help="Use the lock as it is, whatever the profile says.")
@_allow
@_offline
def build(
    profile: str,
    out: Path,
    python: str | None,
    locked: bool,
    frozen: bool,
    allow: tuple[str, ...],
    offline: bool,
) -> None:
    """Build the environment of PROFILE, or say that nothing has changed."""
    from envspec.build import BuildRequest
    from envspec.build import build as run_build
    from envspec.progress import make_progress
    from envspec.resources import find_profile

    request = BuildRequest(
        profile=find_profile(profile),
        out=out,
        python=python,
        lock_mode=_lock_mode(locked, frozen),
        offline=offline,
        allowed=frozenset(allow),
    )
    result = run_build(request, make_progress())
    if not result.built:
        click.echo("nothing to do: the environment is up to date")
    click.echo(f"source {_shell_word(_relative(result.script))}")


@cli.command()
@_profile
@_python
@click.option("--upgrade", is_flag=True, help="Raise every package to the newest version the profile admits.")
@click.option("--upgrade-package", multiple=True, metavar="NAME", help="Raise this package; may be repeated.")
@click.option("--locked", is_flag=True, help="Write nothing; fail if the lock does not match the profile.")
@_offline
def lock(
    profile: str,
    python: str | None,
    upgrade: bool,
    upgrade_package: tuple[str, ...],
    locked: bool,
    offline: bool,
) -> None:
    """Make the lock of PROFILE, or bring it up to date and show the change."""
    from envspec.commands.lock import LockRequest, run_lock
    from envspec.progress import make_progress
    from envspec.resources import find_profile

    outcome = run_lock(
        LockRequest(
            profile=find_profile(profile),
            python=python,
            upgrade=_upgrade(upgrade, upgrade_package),
            lock_mode=_lock_mode(locked, False),
            offline=offline,
        ),
        make_progress(),
    )
    for line in outcome:
        click.echo(line)


@cli.command()
@_profile
@_python
@_allow
@_json
@_offline
def check(profile: str, python: str | None, allow: tuple[str, ...], as_json: bool, offline: bool) -> None:
    """Decide whether the locked set of PROFILE can work, before anything large is downloaded."""
    from envspec.commands.check import CheckRequest, run_check
    from envspec.progress import make_progress
    from envspec.resources import find_profile

    found = run_check(
        CheckRequest(profile=find_profile(profile), python=python, offline=offline, allowed=frozenset(allow)),
        make_progress(),
    )
    _show(found, as_json)


@cli.command()
@_out
@_allow
@click.option("--gpu-code", is_flag=True, help="Tell which packages have machine code for the profile's GPU.")
@click.option("--hash", "hashes", is_flag=True, help="Compare every file's content, not only its size.")
@_json
def audit(out: Path, allow: tuple[str, ...], gpu_code: bool, hashes: bool, as_json: bool) -> None:
    """Prove on the installed files that everything links, and belongs there."""
    from envspec.commands.audit import AuditRequest, run_audit
    from envspec.progress import make_progress

    request = AuditRequest(out=out, gpu_code=gpu_code, hashes=hashes, allowed=frozenset(allow))
    _show(run_audit(request, make_progress()), as_json)


def _show(found: Report, as_json: bool) -> None:
    """Print a report; errors in it are the exit code 1."""
    from envspec.findings import to_json
    from envspec.render import render_report

    click.echo(to_json(found) if as_json else render_report(found), nl=False)
    if found.errors:
        raise click.exceptions.Exit(int(Exit.FINDINGS))


@cli.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_out
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run(out: Path, command: tuple[str, ...]) -> None:
    """Run COMMAND inside the environment, without sourcing anything.

    Signals and the exit code pass through: envspec is replaced by the command.
    """
    from envspec.commands.run import run_inside

    run_inside(out, command)


@cli.command()
def profiles() -> None:
    """List the shipped profiles, which can be named instead of a path."""
    from envspec.resources import shipped_profiles

    for path in shipped_profiles():
        click.echo(f"{path.stem}\t{path}")


def _lock_mode(locked: bool, frozen: bool) -> LockMode:
    from envspec.lock.ensure import LockMode

    if locked and frozen:
        raise click.UsageError("--locked and --frozen exclude each other")
    return LockMode.LOCKED if locked else LockMode.FROZEN if frozen else LockMode.UPDATE


def _upgrade(all_: bool, names: tuple[str, ...]) -> list[str] | None:
    if all_:
        return []
    return list(names) or None


def _relative(path: Path) -> Path:
    """The path as a user in this directory would type it."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _shell_word(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def main() -> NoReturn:
    """The entry point: every error the user can read becomes text and an exit code."""
    try:
        # Click gives the code of an Exit as the result when it does not stand alone.
        code = cli.main(standalone_mode=False) or int(Exit.OK)
    except EnvspecError as error:
        from envspec.render import render_error

        click.echo(render_error(error), err=True, nl=False)
        code = int(error.exit)
    except click.ClickException as error:
        error.show()
        code = int(Exit.USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; the environment that was there before is untouched", err=True)
        code = int(Exit.INTERRUPTED)
    except OSError as error:
        from envspec.os_errors import explain_os_error
        from envspec.render import render_error

        click.echo(render_error(explain_os_error(error)), err=True, nl=False)
        code = int(Exit.WORLD)
    sys.exit(code)
