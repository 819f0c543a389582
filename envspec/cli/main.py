"""The command line: parses, calls, renders, sets the exit code. It decides nothing.

Each verb imports what it needs when it runs, so that `envspec --help` and short verbs start quickly.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from gc import disable as never_look_for_cycles
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from envspec import __version__
from envspec.report.errors import EnvspecError, Exit, Terminated

if TYPE_CHECKING:
    from envspec.lock.ensure import LockMode
    from envspec.report.findings import Report

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
@click.option(
    "--expect", metavar="DIGEST", help="Fail if the environment's digest is another one (envspec digest)."
)
@_offline
def build(
    profile: str,
    out: Path,
    python: str | None,
    locked: bool,
    frozen: bool,
    allow: tuple[str, ...],
    expect: str | None,
    offline: bool,
) -> None:
    """Build the environment of PROFILE, or say that nothing has changed."""
    from envspec.build.pipeline import BuildRequest
    from envspec.build.pipeline import build as run_build
    from envspec.cli.progress import make_progress
    from envspec.data.shipped import find_profile

    request = BuildRequest(
        profile=find_profile(profile),
        out=out,
        python=python,
        lock_mode=_lock_mode(locked, frozen),
        offline=offline,
        allowed=_allowed(allow),
        expected=expect,
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
    from envspec.cli.lock import LockRequest, run_lock
    from envspec.cli.progress import make_progress
    from envspec.data.shipped import find_profile

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
@click.option(
    "--fix",
    is_flag=True,
    help="Mend the profile in place where the remedy is obvious, and show the difference.",
)
@click.option("--frozen", is_flag=True, help="Check the lock as it is, whatever the profile says.")
@_json
@_offline
def check(
    profile: str,
    python: str | None,
    allow: tuple[str, ...],
    fix: bool,
    frozen: bool,
    as_json: bool,
    offline: bool,
) -> None:
    """Decide whether the locked set of PROFILE can work, before anything large is downloaded."""
    from envspec.cli.check import CheckRequest, run_check, run_fix
    from envspec.cli.progress import make_progress
    from envspec.data.shipped import find_profile

    request = CheckRequest(
        profile=find_profile(profile), python=python, offline=offline, frozen=frozen, allowed=_allowed(allow)
    )
    if not fix:
        _show(run_check(request, make_progress()), as_json)
        return
    result = run_fix(request, make_progress())
    for line in result.difference:
        click.echo(line, err=as_json)
    if not result.difference:
        click.echo(
            "nothing to mend: no error has an obvious remedy" if result.report.errors else "nothing to mend",
            err=as_json,
        )
    _show(result.report, as_json)


@cli.command()
@click.argument("package")
@_profile
@_python
@_offline
def why(package: str, profile: str, python: str | None, offline: bool) -> None:
    """Print who asked for PACKAGE in PROFILE, each chain down to the profile."""
    from envspec.cli.progress import make_progress
    from envspec.cli.why import run_why
    from envspec.data.shipped import find_profile

    for line in run_why(package, find_profile(profile), python, offline, make_progress()):
        click.echo(line)


@cli.command()
@click.argument("package")
@click.option("--torch", metavar="VERSION", help="Say for each release whether it fits this torch.")
@click.option(
    "--python",
    "minor",
    default="3.12",
    show_default=True,
    metavar="MINOR",
    help="The Python that wheels are for.",
)
@click.option("--machine", type=click.Choice(["x86_64", "aarch64"]), help="The machine; this one by default.")
@click.option("--most", default=20, show_default=True, help="How many of the newest releases to look into.")
@_json
@_offline
def match(
    package: str, torch: str | None, minor: str, machine: str | None, most: int, as_json: bool, offline: bool
) -> None:
    """Tell which releases of the extension PACKAGE fit which torch, from symbols alone."""
    import platform

    from envspec.cli.match import MatchRequest, known_torch, render_match, run_match
    from envspec.cli.progress import make_progress
    from envspec.lock.targets import Target
    from envspec.report.findings import to_json

    target = Target(minor, machine or platform.machine())
    torch = known_torch(torch, target.machine) if torch else None
    table = run_match(
        MatchRequest(package=package, target=target, most=most, offline=offline), make_progress()
    )
    if as_json:
        click.echo(to_json(table), nl=False)
    else:
        for line in render_match(table, torch):
            click.echo(line)


@cli.command()
@_out
@_allow
@click.option("--gpu-code", is_flag=True, help="Tell which packages have machine code for the profile's GPU.")
@click.option(
    "--hash", "check_contents", is_flag=True, help="Read every file instead of trusting size, time and inode."
)
@_json
def audit(out: Path, allow: tuple[str, ...], gpu_code: bool, check_contents: bool, as_json: bool) -> None:
    """Prove on the installed files that everything links, and belongs there."""
    from envspec.cli.audit import AuditRequest, run_audit
    from envspec.cli.progress import make_progress

    request = AuditRequest(out=out, gpu_code=gpu_code, check_contents=check_contents, allowed=_allowed(allow))
    _show(run_audit(request, make_progress()), as_json)


def _show(found: Report, as_json: bool) -> None:
    """Print a report; errors in it are the exit code 1."""
    from envspec.cli.render import render_report
    from envspec.report.findings import to_json

    click.echo(to_json(found) if as_json else render_report(found), nl=False)
    if found.errors:
        raise click.exceptions.Exit(int(Exit.FINDINGS))


@cli.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Tell why CODE exists, what it looks like at run time and how to mend it; without CODE, list all."""
    from envspec.cli.explain import run_explain

    click.echo(run_explain(code), nl=False)


@cli.command()
@click.argument("log")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Relate the cause to this output, and tell which command mends it.",
)
@_json
def diagnose(log: str, out: Path | None, as_json: bool) -> None:
    """Find the root cause in LOG, a file or - for standard input: a server's, a compiler's, an installer's.

    Exit 0 whenever the log was read.
    """
    from envspec.cli.diagnose import run_diagnose
    from envspec.diagnose import render_text, to_json

    found = run_diagnose(log, out)
    click.echo(to_json(found) if as_json else render_text(found), nl=False)


@cli.command()
@click.argument("words", nargs=-1, metavar="[PROFILE] [CHECK]...")
@_out
@click.option("--list", "listing", is_flag=True, help="List the checks and run none.")
@_json
def doctor(words: tuple[str, ...], out: Path, listing: bool, as_json: bool) -> None:
    """Look at this machine: is it fit for PROFILE, and what on it would mislead the compilers?

    It only reads. With names of checks, only those are run. Exit 1 if there are errors.
    """
    from envspec.cli.doctor import list_checks, read_words, run_doctor
    from envspec.doctor.engine import all_checks

    request = read_words(words, out)
    if listing:
        for line in list_checks(all_checks()):
            click.echo(line)
    else:
        _show(run_doctor(request), as_json)


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_out
@click.option("--list", "listing", is_flag=True, help="List the probes and run none.")
@click.option(
    "--logs",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep what each probe printed, as DIR/NAME.log.",
)
@_json
def probe(names: tuple[str, ...], out: Path, listing: bool, logs: Path | None, as_json: bool) -> None:
    """Compile and link, in the environment and for its GPU, what its JIT compilers compile; on a GPU also run it.

    Without NAME, everything whose packages are installed. Exit 1 if something fails.
    """
    from envspec.cli.progress import make_progress
    from envspec.cli.render import render_probes
    from envspec.probe.rows import probe_rows
    from envspec.report.findings import to_json

    if listing:
        for row in probe_rows():
            click.echo(
                f"{row.name:<18}  {row.means}" + (f" ({', '.join(row.packages)})" if row.packages else "")
            )
        return
    from envspec.cli.probe import ProbeRequest, run_probe

    found = run_probe(ProbeRequest(out=out, names=names, logs=logs), make_progress())
    click.echo(to_json(found) if as_json else render_probes(found), nl=False)
    if found.errors:
        raise click.exceptions.Exit(int(Exit.FINDINGS))


@cli.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_out
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run(out: Path, command: tuple[str, ...]) -> None:
    """Run COMMAND inside the environment, without sourcing anything.

    Signals and the exit code pass through: envspec is replaced by the command.
    """
    from envspec.cli.run import run_inside

    run_inside(out, command)


@cli.command()
@_out
def digest(out: Path) -> None:
    """Print the environment digest: the same wherever and whenever the same environment was built."""
    from envspec.output.history import current_head

    click.echo(current_head(out).digest)


@cli.command()
@_out
@_json
def generations(out: Path, as_json: bool) -> None:
    """List the generations of an output, and who uses them."""
    from envspec.cli.render import render_generations
    from envspec.output.history import list_generations
    from envspec.report.findings import to_json

    found = list_generations(out)
    click.echo(to_json(found) if as_json else render_generations(found), nl=False)


@cli.command()
@_out
@click.argument("number", type=int, required=False)
def rollback(out: Path, number: int | None) -> None:
    """Make the generation before the current one current again, or generation NUMBER."""
    from envspec.output.history import rollback as run_rollback

    click.echo(f"generation {run_rollback(out, number, _waiting)} is current")


@cli.command()
@_out
@click.option(
    "--keep", default=1, show_default=True, type=click.IntRange(min=0), help="Older generations to keep."
)
def gc(out: Path, keep: int) -> None:
    """Remove old generations and toolchains that nothing needs and no process uses."""
    from envspec.cli.render import render_gc
    from envspec.output.history import collect

    click.echo(render_gc(collect(out, keep, _waiting)), nl=False)


@cli.command()
@_out
@click.option(
    "--hash", "check_contents", is_flag=True, help="Read every file instead of trusting size, time and inode."
)
@_json
def verify(out: Path, check_contents: bool, as_json: bool) -> None:
    """Tell what has drifted in the current environment since it was published, and by whom."""
    from envspec.cli.progress import make_progress
    from envspec.cli.verify import run_verify

    _show(run_verify(out, check_contents, make_progress()), as_json)


@cli.command()
@_out
@click.option("--prune", is_flag=True, help="Also remove packages that are not in the lock.")
@click.option(
    "--hash", "check_contents", is_flag=True, help="Read every file instead of trusting size, time and inode."
)
@click.option("--profile", help="The profile, where its packages come from an index that it names itself.")
@_json
@_offline
def repair(
    out: Path, prune: bool, check_contents: bool, profile: str | None, as_json: bool, offline: bool
) -> None:
    """Put back exactly what has drifted in the current environment."""
    from envspec.cli.progress import make_progress
    from envspec.cli.verify import run_repair
    from envspec.data.shipped import find_profile

    path = find_profile(profile) if profile else None
    _show(run_repair(out, path, prune, check_contents, offline, make_progress(), _waiting).report, as_json)


@cli.command()
@_profile
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@_out
@_python
@_allow
@click.option("--yes", is_flag=True, help="Do not ask.")
@_offline
def upgrade(
    profile: str,
    packages: tuple[str, ...],
    out: Path,
    python: str | None,
    allow: tuple[str, ...],
    yes: bool,
    offline: bool,
) -> None:
    """Raise PACKAGES (or all) of PROFILE: lock, check, show, ask, build, and switch only if everything passed."""
    from envspec.build.upgrade import UpgradeRequest, run_upgrade
    from envspec.cli.progress import make_progress
    from envspec.data.shipped import find_profile

    def confirm(changes: list[str]) -> bool:
        for change in changes:
            click.echo(f"  {change}")
        return yes or click.confirm("build this?")

    request = UpgradeRequest(
        profile=find_profile(profile),
        packages=packages,
        out=out,
        python=python,
        offline=offline,
        allowed=_allowed(allow),
    )
    result = run_upgrade(request, confirm, make_progress())
    if result is None:
        click.echo("nothing was changed")
    else:
        click.echo(f"source {_shell_word(_relative(result.script))}")


@cli.command()
@click.argument("a")
@click.argument("b")
@_out
@_json
def diff(a: str, b: str, out: Path, as_json: bool) -> None:
    """Compare A with B: generation numbers, manifests, output directories, locks or profiles."""
    from envspec.cli.diff import compare, render, side_of
    from envspec.data.shipped import find_profile
    from envspec.output.generations import Output
    from envspec.report.findings import to_json

    output = Output(out.resolve())
    found = compare(side_of(str(find_profile(a)), output), side_of(str(find_profile(b)), output))
    click.echo(to_json(found), nl=False) if as_json else click.echo("\n".join(render(found)))


def _waiting(who: str) -> None:
    click.echo(f"waiting for {who}", err=True)


@cli.command()
def profiles() -> None:
    """List the shipped profiles, which can be named instead of a path."""
    from envspec.data.shipped import shipped_profiles

    for path in shipped_profiles():
        click.echo(f"{path.stem}\t{path}")


def _allowed(codes: tuple[str, ...]) -> frozenset[str]:
    """The codes of --allow; one that does not exist would silently allow nothing."""
    if codes:
        from envspec.cli.explain import require_code

        for code in codes:
            require_code(code)
    return frozenset(codes)


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


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated(number)


def main() -> NoReturn:
    """The entry point: every error the user can read becomes text and an exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP, and so do we then
            signal.signal(number, _terminate)
    # A command lives for seconds and makes hundreds of thousands of values without a cycle: looking for cycles among them
    # took a third of the time of taking stock of an environment.
    never_look_for_cycles()
    try:
        # Click gives the code of an Exit as the result when it does not stand alone.
        code = cli.main(prog_name="envspec", standalone_mode=False) or int(Exit.OK)
    except EnvspecError as error:
        from envspec.report.text import render_error

        click.echo(render_error(error), err=True, nl=False)
        code = int(error.exit)
    except click.ClickException as error:
        error.show()
        code = int(Exit.USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; the environment that was there before is untouched", err=True)
        code = int(Exit.INTERRUPTED)
    except Terminated as ended:
        code = ended.exit
    except OSError as error:
        from envspec.report.os_errors import explain_os_error
        from envspec.report.text import render_error

        click.echo(render_error(explain_os_error(error)), err=True, nl=False)
        code = int(Exit.WORLD)
    sys.exit(code)
