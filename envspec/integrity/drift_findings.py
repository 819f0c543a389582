"""Drift as findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from envspec.integrity.drift import Drift, find_drift
from envspec.output.generations import Generation, Output
from envspec.output.manifest import Manifest
from envspec.report.findings import Finding, Report, Severity, report
from envspec.venv.inventory import ENVSPEC
from envspec.venv.owners import Distribution, distributions, installer_of, owners_of_added

_SHOWN = 4


def verify(
    output: Output, generation: Generation, *, thorough: bool, detail: Callable[[str], None] = lambda t: None
) -> Report:
    """The drift of a generation as findings, one for each package and kind."""
    manifest, drift = find_drift(output, generation, thorough=thorough, detail=detail)
    return report("verify", str(output.root), findings_of(manifest, drift, generation))


def findings_of(manifest: Manifest, drift: Drift, generation: Generation) -> Iterator[Finding]:
    """Drift in words."""
    site = generation.venv / manifest.script.site_packages
    locked = {p.name: p.version for p in manifest.packages}
    found = tuple(distributions(site))
    added, owners = owners_of_added(drift.added, manifest.script.site_packages, found, site)
    there = {d.name for d in found if d.version == locked.get(d.name)}
    replaced = set()
    for name in sorted(locked):
        others = [d for d in found if d.name == name and d.version != locked[name]]
        if not others and name in there:
            continue
        replaced.add(name)
        files = [r.path for r in (*drift.changed, *drift.missing) if r.owner == name]
        for other in others:
            files += added.pop(other.directory, ())
        yield _finding(
            "drift-replaced",
            name,
            _replaced(name, locked[name], others, name in there, site),
            [f"{_files(len(files))} changed, missing or added"],
        )
    for kind, rows in (("changed", drift.changed), ("missing", drift.missing), ("modes", drift.modes)):
        by_owner: dict[str, list[str]] = {}
        for row in rows:
            if row.owner not in replaced:
                by_owner.setdefault(row.owner, []).append(row.path)
        for owner, paths in sorted(by_owner.items()):
            code = "drift-missing" if kind == "missing" else "drift-changed"
            yield _finding(code, owner, _sentence(owner, len(paths), kind), paths)
    for directory, paths in sorted(added.items()):
        distribution = owners.get(directory)
        if distribution is not None:
            with_what = f"was added with {installer_of(site / directory)}; it is not in the lock"
            message = f"{distribution.name} {distribution.version} {with_what}"
            paths = [_files(len(paths))]
        else:
            message = f"{_files(len(paths))} that nobody locked"
        yield _finding(
            "drift-added", distribution.name if distribution else "venv", message, paths, Severity.WARNING
        )
    if drift.toolkit or drift.cuda:
        link = ("the link to CUDA_HOME",) if drift.cuda else ()
        count = len(drift.toolkit)
        message = f"{_files(count)} of CUDA_HOME {'differs' if count == 1 else 'differ'}"
        yield _finding(
            "drift-toolkit",
            "cuda",
            message if count else "the link to CUDA_HOME was changed or removed",
            [*(r.path for r in drift.toolkit), *(link if count else ())],
        )
    if drift.toolkit_added:
        message = f"{_files(len(drift.toolkit_added))} in CUDA_HOME that envspec did not put there"
        yield _finding("drift-added", "cuda", message, drift.toolkit_added, Severity.WARNING)
    if drift.script:
        yield _finding(
            "drift-script", generation.script.name, "the environment script was changed or removed", []
        )


def _replaced(name: str, version: str, others: list[Distribution], there: bool, site: Path) -> str:
    if not others:
        return f"{name} {version} was removed"
    what = " and ".join(f"{d.version} with {installer_of(site / d.directory)}" for d in others)
    return f"{name} {version} was {'overlaid' if there else 'replaced'} by {what}"


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _sentence(owner: str, count: int, kind: str) -> str:
    of = {"uv": "the venv itself", ENVSPEC: "envspec"}.get(owner, owner)
    if kind == "modes":
        return f"{_files(count)} of {of} {'has' if count == 1 else 'have'} other permissions"
    return f"{_files(count)} of {of} {'is' if count == 1 else 'are'} {kind}"


def _finding(
    code: str, subject: str, message: str, paths: Iterable[str], severity: Severity = Severity.ERROR
) -> Finding:
    listed = sorted(paths)
    shown = [*listed[:_SHOWN], *([f"and {len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else [])]
    fix = (
        "envspec repair"
        if severity is Severity.ERROR
        else "envspec repair --prune removes added packages; other files are yours"
    )
    return Finding(
        code=code, severity=severity, subject=subject, message=message, evidence=tuple(shown), fix=fix
    )
