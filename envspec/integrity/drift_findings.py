"""Drift in words: the one place that says whose file is not what it was, for `verify`, `audit` and `repair`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from envspec.activation.values import SCRIPT
from envspec.integrity.drift import Drift, find_drift
from envspec.integrity.places import Entry, Places
from envspec.output.generations import LINKS, Generation, Output
from envspec.output.manifest import Manifest
from envspec.report.findings import Finding, Report, counted, error, report, warning
from envspec.venv.inventory import FileRow
from envspec.venv.owners import ENVSPEC, UV, AddedPackage

_SHOWN = 4
_REPAIR = "envspec repair"
_SHADOWING = "remove them, or build again: another generation has none of them"
_PRUNE = "envspec repair --prune removes added packages; other files are yours"


def verify(
    output: Output,
    generation: Generation,
    *,
    check_contents: bool = False,
    detail: Callable[[str], None] = lambda t: None,
) -> Report:
    """Report the drift of a generation, a finding for each package and kind. Raises EnvspecError `manifest-damaged`."""
    manifest, drift = find_drift(output, generation, check_contents=check_contents, detail=detail)
    return report("verify", str(output.root), drift_findings(manifest, drift))


def drift_findings(manifest: Manifest, drift: Drift) -> Iterator[Finding]:
    """Turn drift into findings: packages first, then their files, CUDA_HOME, the script and what lies around them."""
    added = _added_files(drift)
    replaced = set()
    for package in manifest.packages:
        others = [p for p in drift.packages if p.name == package.name]
        if not others and package.name not in drift.removed:
            continue
        replaced.add(package.name)
        number = sum(row.owner == package.name for row in (*drift.changed, *drift.missing))
        number += sum(len(added.pop(other, ())) for other in others)
        yield error(
            "drift-replaced",
            package.name,
            _replaced(f"{package.name} {package.version}", others, package.name in drift.removed),
            evidence=[f"{counted(number, 'file')} changed, missing or added"],
            fix=_REPAIR,
        )
    yield from _files_differ("drift-changed", "changed", drift.changed, replaced)
    yield from _files_differ("drift-missing", "missing", drift.missing, replaced)
    yield from _other_permissions(drift.modes, replaced)
    yield from _other_owner(drift.foreign, replaced)
    yield from _additions(added)
    yield from _shadowing(drift)
    yield from _bytecode(drift)
    yield from _toolkit(drift)
    if drift.script:
        yield error("drift-script", SCRIPT, "the environment script was changed or removed", fix=_REPAIR)
    yield from _entries(drift.places.entries)
    yield from _places(drift.places)
    if drift.python:
        message = f"the environment's interpreter {drift.python}"
        fix = "install the Python that it was built with again, or build again"
        yield error("drift-python", "venv/bin/python", message, fix=fix)


def _entries(entries: Iterable[Entry]) -> Iterator[Finding]:
    for entry in entries:
        if entry.foreign:
            message = f"{entry.name} is not the link that envspec made"
            yield error("drift-entry", entry.name, message, fix=f"move it away, and then: {_REPAIR}")
            continue
        how = f"leads to {entry.found} instead of {LINKS[entry.name]}" if entry.found else "is missing"
        yield error("drift-entry", entry.name, f"{entry.name} {how}", fix=_REPAIR)


def _places(places: Places) -> Iterator[Finding]:
    if where := tuple(place.path for place in places.writable):
        message = f"others may write to {counted(len(where), 'place')} that {_decide(where)} what runs"
        yield error("drift-writable", "permissions", message, evidence=_named(where), fix=_REPAIR)
    if where := places.owners:
        message = f"{counted(len(where), 'place')} that {_decide(where)} what runs {_belong(where)} to somebody else"
        fix = "give the whole output to one user, or build into another --out"
        yield error("drift-owner", "owner", message, evidence=_named(where), fix=fix)


def _decide(where: tuple[str, ...]) -> str:
    return "decides" if len(where) == 1 else "decide"


def _belong(where: tuple[str, ...]) -> str:
    return "belongs" if len(where) == 1 else "belong"


def _named(where: Iterable[str]) -> list[str]:
    return _some("the output itself" if path == "." else path for path in where)


def _other_owner(rows: Iterable[FileRow], replaced: set[str]) -> Iterator[Finding]:
    for owner, paths in _by_owner(rows, replaced):
        message = f"{counted(len(paths), 'file')} of {_whose(owner)} {_belong(tuple(paths))} to another user"
        yield error("drift-owner", owner, message, evidence=_some(paths), fix=_REPAIR)


def _added_files(drift: Drift) -> dict[AddedPackage | None, list[str]]:
    """Sort added files by the added package that names them; those under None are nobody's."""
    left = set(drift.added)
    found: dict[AddedPackage | None, list[str]] = {}
    for package in drift.packages:
        if own := left & package.paths:
            found[package] = sorted(own)
            left -= own
    if left:
        found[None] = sorted(left)
    return found


def _replaced(title: str, others: list[AddedPackage], gone: bool) -> str:
    if not others:
        return f"{title} was removed"
    what = " and ".join(f"{p.version} with {p.installer}" for p in others)
    return f"{title} was {'replaced' if gone else 'overlaid'} by {what}"


def _files_differ(code: str, how: str, rows: Iterable[FileRow], replaced: set[str]) -> Iterator[Finding]:
    for owner, paths in _by_owner(rows, replaced):
        message = (
            f"{counted(len(paths), 'file')} of {_whose(owner)} {'is' if len(paths) == 1 else 'are'} {how}"
        )
        yield error(code, owner, message, evidence=_some(paths), fix=_REPAIR)


def _other_permissions(rows: Iterable[FileRow], replaced: set[str]) -> Iterator[Finding]:
    for owner, paths in _by_owner(rows, replaced):
        has = "has" if len(paths) == 1 else "have"
        message = f"{counted(len(paths), 'file')} of {_whose(owner)} {has} other permissions"
        yield error("drift-changed", owner, message, evidence=_some(paths), fix=_REPAIR)


def _additions(added: dict[AddedPackage | None, list[str]]) -> Iterator[Finding]:
    for package, paths in added.items():
        if package is None:
            message = f"{counted(len(paths), 'file')} that nobody locked"
            yield warning("drift-added", "venv", message, evidence=_some(paths), fix=_PRUNE)
        else:
            message = f"{package} was added with {package.installer}; it is not in the lock"
            files = [counted(len(paths), "file")]
            yield warning("drift-added", package.name, message, evidence=files, fix=_PRUNE)


def _shadowing(drift: Drift) -> Iterator[Finding]:
    if paths := drift.shadowing:
        changes = "changes" if len(paths) == 1 else "change"
        message = f"{counted(len(paths), 'added file')} {changes} what is imported or executed"
        owned = any(paths & package.paths for package in drift.packages)
        fix = "envspec repair --prune" if owned else _SHADOWING
        yield error("drift-shadow", "venv", message, evidence=_some(paths), fix=fix)


def _bytecode(drift: Drift) -> Iterator[Finding]:
    if paths := drift.bytecode.wrong:
        message = f"{counted(len(paths), 'file')} of byte code {_is(paths)} not what the source compiles to"
        yield error("drift-bytecode", "venv", message, evidence=_some(paths), fix=f"{_REPAIR} --hash")
    if paths := drift.bytecode.strange:
        message = f"{counted(len(paths), 'file')} beside byte code that {_is(paths)} of no source"
        yield warning("drift-added", "byte code", message, evidence=_some(paths), fix=_PRUNE)


def _is(paths: tuple[str, ...]) -> str:
    return "is" if len(paths) == 1 else "are"


def _toolkit(drift: Drift) -> Iterator[Finding]:
    if number := len(drift.toolkit):
        paths = [row.path for row in drift.toolkit] + ["the link to CUDA_HOME"] * drift.cuda
        message = f"{counted(number, 'file')} of CUDA_HOME {'differs' if number == 1 else 'differ'}"
        yield error("drift-toolkit", "cuda", message, evidence=_some(paths), fix=_REPAIR)
    elif drift.cuda:
        yield error("drift-toolkit", "cuda", "the link to CUDA_HOME was changed or removed", fix=_REPAIR)
    if drift.toolkit_added:
        message = f"{counted(len(drift.toolkit_added), 'file')} in CUDA_HOME that envspec did not put there"
        yield error(
            "drift-added", "cuda", message, evidence=_some(drift.toolkit_added), fix="envspec repair --prune"
        )


def _by_owner(rows: Iterable[FileRow], without: set[str]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.owner not in without:
            found.setdefault(row.owner, []).append(row.path)
    return sorted(found.items())


def _whose(owner: str) -> str:
    return {UV: "the venv itself", ENVSPEC: "envspec"}.get(owner, owner)


def _some(paths: Iterable[str]) -> list[str]:
    listed = sorted(paths)
    return [*listed[:_SHOWN], *([f"and {len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else [])]
