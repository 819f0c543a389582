"""torch's C++ ABI, symbol by symbol: what version numbers do not tell."""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import Selection
from envspec.check.rules import RULES
from envspec.elf import demangle
from envspec.report.findings import Finding, error, unknown
from envspec.report.remedies import TakeFittingRelease
from envspec.torch_abi import exports as torch_exports
from envspec.torch_abi.variants import broken_members
from envspec.wheels.file import SetContents

_SHOWN = 6


@RULES.rule("Every compiled extension finds in the set's torch all symbols that it imports from torch.")
def torch_abi(selection: Selection, contents: SetContents) -> Iterator[Finding]:
    torch = selection.version("torch")
    if torch is None:
        return
    table = torch_exports.load()
    release = table.nearest(str(torch), selection.target.machine)
    if release is None:
        yield unknown(
            "torch-abi",
            "torch",
            f"envspec has no export table for torch {torch} on {selection.target.machine}",
            evidence=(f"it has {', '.join(table.releases(selection.target.machine))}",),
            dependency_paths=selection.why("torch"),
            fix="upgrade envspec; envspec audit decides it on the installed files",
        )
        return
    for package, wheel in sorted(contents.by_package.items()):
        if package == "torch":
            continue
        unread = [library for library in wheel.libraries if library.problem]
        # A package that neither requires torch nor imports from it is not a torch extension, as far as one can see.
        is_torch_extension = requires_torch(selection, package) or any(
            library.torch_imports for library in wheel.libraries
        )
        if unread and is_torch_extension:
            yield unknown(
                "torch-abi",
                package,
                f"whether {package} {selection.version(package)} fits torch {torch} cannot be told before the download",
                evidence=[f"{library.path}: {library.problem}" for library in unread],
                dependency_paths=selection.why(package),
                fix="envspec audit decides it on the installed files",
            )
        names = {
            lib.path: [n.encode("latin-1") for n in lib.torch_imports]
            for lib in wheel.libraries
            if not lib.problem
        }
        missing = {
            path: table.missing(wanted, release, selection.target.machine) for path, wanted in names.items()
        }
        lacking = {path for path, symbols in missing.items() if symbols}
        broken = {
            path: (names[path], missing[path])
            for path in broken_members(missing, lacking.__contains__, str(torch))
        }
        if broken:
            yield _finding(package, broken, selection, table, release)


def requires_torch(selection: Selection, package: str) -> bool:
    """Return whether a package's metadata requires torch."""
    return any(one.by == package for one in selection.required_by.get("torch", ()))


def _finding(
    package: str,
    broken: dict[str, tuple[list[bytes], tuple[bytes, ...]]],
    selection: Selection,
    table: torch_exports.TorchExports,
    release: str,
) -> Finding:
    machine = selection.target.machine
    asked: dict[bytes, list[str]] = {}
    for path, (_, missing) in sorted(broken.items()):
        for name in missing:
            asked.setdefault(name, []).append(path)
    evidence = []
    for name, paths in sorted(asked.items())[:_SHOWN]:
        others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        evidence.append(f"missing: {demangle(name)}")
        evidence.append(
            f"  asked for by {paths[0]}{others}, in torch {_releases(table.releases_exporting(name, machine))}"
        )
    count = len(asked)
    if count > _SHOWN:
        evidence.append(f"and {count - _SHOWN} more")
    wanted = [name for names, _ in broken.values() for name in names]
    evidence.append(f"the package fits torch {_releases(table.fitting_releases(wanted, machine))}")
    return error(
        "torch-abi",
        package,
        f"{package} {selection.version(package)} cannot be loaded with torch {selection.version('torch')}: "
        f"{count} symbol{'s are' if count > 1 else ' is'} missing",
        evidence=evidence,
        dependency_paths=(*selection.why(package), *selection.why("torch")),
        remedies=[TakeFittingRelease(package, release)],
    )


def _releases(releases: tuple[str, ...]) -> str:
    if not releases:
        return "none that envspec knows"
    if len(releases) > 4:
        return f"{releases[0]} to {releases[-1]}" if _contiguous(releases) else ", ".join(releases)
    return ", ".join(releases)


def _contiguous(releases: tuple[str, ...]) -> bool:
    known = torch_exports.load().releases("x86_64")
    try:
        first, last = known.index(releases[0]), known.index(releases[-1])
    except ValueError:
        return False
    return last - first + 1 == len(releases)
