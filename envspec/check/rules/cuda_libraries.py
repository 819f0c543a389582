"""CUDA's libraries: each finds the others that it loads or is linked against, and is there for one CUDA major."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envspec.check.facts import CheckInput, Selection, ToolkitReleases
from envspec.check.rules import RULES
from envspec.data.compatibility import without_cuda_family
from envspec.report.findings import Finding, error, note, unknown, warning
from envspec.report.remedies import AddToList, RemoveKey, RunCommand
from envspec.wheels.file import SetContents, is_library

_SHOWN = 4
_SUFFIX = re.compile(r"(.+)-cu(\d\d)")


@RULES.rule("nvrtc comes with the builtins library of its own minor release.")
def toolkit_nvrtc_builtins(
    toolkit: ToolkitReleases, contents: SetContents, selection: Selection
) -> Iterator[Finding]:
    package = toolkit.packages.get("nvrtc")
    if package is None:
        return
    wheel = contents.by_package.get(package)
    if wheel is None:
        yield unknown("toolkit-nvrtc-builtins", package, f"the files of {package} are not known")
        return
    major, minor = toolkit.versions["nvrtc"].major, toolkit.versions["nvrtc"].minor
    names = {m.path.rsplit("/", 1)[-1] for m in wheel.members}
    wanted = f"libnvrtc-builtins.so.{major}.{minor}"
    if wanted not in names:
        present = sorted(n for n in names if n.startswith("libnvrtc"))
        yield error(
            "toolkit-nvrtc-builtins",
            package,
            f"{package} {toolkit.versions['nvrtc']} does not hold {wanted}, which it loads by name",
            evidence=present,
            dependency_paths=selection.why(package),
            fix="pin another version of the package",
        )


@RULES.rule("nvJitLink exports every function that the libraries linked against it import.")
def nvjitlink_older(contents: SetContents, selection: Selection, given: CheckInput) -> Iterator[Finding]:
    offered: set[str] = set()
    owner = ""
    for package, library in contents.libraries():
        if library.jitlink_exports:
            offered |= set(library.jitlink_exports)
            owner = package
    for package, library in contents.libraries():
        if not library.jitlink_imports:
            continue
        lacking = [n for n in library.jitlink_imports if n not in offered]
        if not owner:
            has_section = given.profile.cuda is not None
            yield error(
                "nvjitlink-older",
                package,
                f"{package} needs libnvJitLink, and no package of the set brings it",
                evidence=(library.path, *lacking[:4]),
                dependency_paths=selection.why(package),
                fix="" if has_section else 'add nvidia-nvjitlink = "*" to the packages of the profile',
                remedies=[AddToList("cuda.components", ("nvjitlink",))] if has_section else [],
            )
        elif lacking:
            pinned = given.profile.names(owner)
            yield error(
                "nvjitlink-older",
                owner,
                f"{owner} {selection.version(owner)} lacks functions that {package} {selection.version(package)} imports",
                evidence=(library.path, *lacking[:4]),
                dependency_paths=selection.why(owner),
                fix="" if pinned else f"raise {owner} to the CUDA release of {package}",
                remedies=[RemoveKey(f"packages.{owner}", "what the others require")] if pinned else [],
            )


@RULES.rule("Two CUDA majors of one library have different files and different names.")
def cuda_majors_mixed(selection: Selection, given: CheckInput, contents: SetContents) -> Iterator[Finding]:
    families: dict[str, list[str]] = {}
    for name in selection.chosen:
        stem, major = cuda_family(name)
        if major:
            families.setdefault(stem, []).append(name)
    for stem, names in sorted(families.items()):
        if len(names) < 2:
            continue
        both = " and ".join(sorted(names))
        paths = [tuple(m.path for m in contents.by_package[name].members) for name in names]
        same_paths = set.intersection(*map(set, paths))
        same_names = set.intersection(
            *({p.rpartition("/")[2] for p in one if is_library(p)} for one in paths)
        )
        why = ("envspec", "why", min(names), str(given.profile.path))
        shared = {path for path in same_paths if is_library(path)}
        if shared:
            yield error(
                "cuda-majors-mixed",
                names[0],
                f"{both} are one library for two CUDA majors, with the same files: one overwrites the other",
                evidence=sorted(shared)[:_SHOWN],
                dependency_paths=[line for name in sorted(names) for line in selection.why(name)],
                remedies=[RunCommand(why, f"find out who requires the other {stem}")],
            )
        elif same_names:
            yield warning(
                "cuda-majors-mixed",
                names[0],
                f"{both} are one library for two CUDA majors under one name: a process gets the one that it loads first",
                evidence=sorted(same_names)[:_SHOWN],
                dependency_paths=[line for name in sorted(names) for line in selection.why(name)],
                remedies=[RunCommand(why, f"find out who requires the other {stem}")],
            )
        else:
            yield note(
                "cuda-majors-mixed",
                names[0],
                f"{both} are one library for two CUDA majors; their files and names differ, so both can be loaded",
                dependency_paths=[line for name in sorted(names) for line in selection.why(name)],
            )


def cuda_family(name: str) -> tuple[str, str]:
    """Return a CUDA library and the major it is for: `nvidia-cublas-cu12` -> (`nvidia-cublas`, `12`); "" if for none.

    Since CUDA 13 the packages have no suffix.
    """
    if not name.startswith("nvidia-") or name.startswith(without_cuda_family()):
        return name, ""
    suffixed = _SUFFIX.fullmatch(name)
    if suffixed:
        return suffixed[1], suffixed[2]
    return (name, "13") if name.startswith(("nvidia-cu", "nvidia-nv")) else (name, "")
