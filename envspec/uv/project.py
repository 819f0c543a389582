"""The throw-away project in which uv resolves and installs: one value, and the only writer of its `pyproject.toml`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from envspec.profile import Profile
from envspec.profile.model import Index

ROOT = "profile"
"""The name of the project that stands for a profile: uv.lock has it as a package."""

_FAR_FUTURE = "2100-01-01T00:00:00Z"


class UvProject(msgspec.Struct, frozen=True, kw_only=True):
    """Says what uv is asked for. Fields that are empty are not written: uv's own default is in force."""

    requires_python: str = ""
    requirements: tuple[str, ...] = ()
    """What is asked for, in PEP 508 form; for an installation from a list of requirements nothing is."""
    overrides: tuple[str, ...] = ()
    """Versions that win over what any package asks for, in PEP 508 form."""
    machines: tuple[str, ...] = ()
    """The machines, such as `x86_64`, for which the resolution has to hold, on Linux."""
    indexes: tuple[Index, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    """(package, index): which packages come from which index and from no other."""
    exclude_newer: str = ""
    """RFC 3339: only files uploaded before it exist for the resolver."""
    any_date: tuple[str, ...] = ()
    """Packages to which `exclude_newer` does not apply."""
    allow_sdists: bool = False
    """Whether source distributions may be built. uv has no switch for single packages when it locks: that is checked afterwards."""

    @property
    def text(self) -> str:
        """Return the content of `pyproject.toml`."""
        return "\n".join(self._lines()) + "\n"

    def write(self, directory: Path) -> None:
        """Write `pyproject.toml` into a directory, which is made if it is not there."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "pyproject.toml").write_text(self.text, encoding="utf-8")

    def _lines(self) -> Iterable[str]:
        yield from ("[project]", f'name = "{ROOT}"', 'version = "0"')
        if self.requires_python:
            yield f"requires-python = {_string(self.requires_python)}"
        yield f"dependencies = {_strings(self.requirements)}"
        yield from ("[tool.uv]", "package = false", f"no-build = {_boolean(not self.allow_sdists)}")
        if self.exclude_newer:
            yield f"exclude-newer = {_string(self.exclude_newer)}"
        if self.exclude_newer and self.any_date:
            later = ", ".join(f"{_string(name)} = {_string(_FAR_FUTURE)}" for name in self.any_date)
            yield f"exclude-newer-package = {{ {later} }}"
        if self.machines:
            markers = [f"sys_platform == 'linux' and platform_machine == '{m}'" for m in self.machines]
            yield f"environments = {_strings(markers)}"
        if self.overrides:
            yield f"override-dependencies = {_strings(self.overrides)}"
        for index in self.indexes:
            yield from _index_lines(index)
        if self.sources:
            yield "[tool.uv.sources]"
        for package, name in self.sources:
            yield f"{_string(package)} = {{ index = {_string(name)} }}"


def resolution_project(
    profile: Profile,
    requirements: Iterable[str],
    overrides: Iterable[str] = (),
    *,
    any_date: Sequence[str] = (),
) -> UvProject:
    """Return the project that resolves requirements as a profile wants it: its Pythons, machines, indexes and date."""
    return UvProject(
        requires_python=profile.python.versions,
        requirements=tuple(requirements),
        overrides=tuple(overrides),
        machines=profile.machines,
        indexes=profile.indexes,
        sources=sources_of(profile),
        exclude_newer=profile.exclude_newer,
        any_date=tuple(any_date),
        allow_sdists=bool(profile.allow_sdists),
    )


def installation_project(indexes: Iterable[Index]) -> UvProject:
    """Return the project from which locked files are installed.

    Every index serves every package: where requirements stand in a file, uv knows no sources, and the hashes decide. What
    may be built from source is said when `Uv.install` is called.
    """
    return UvProject(
        indexes=tuple(msgspec.structs.replace(index, explicit=False) for index in indexes), allow_sdists=True
    )


def sources_of(profile: Profile) -> tuple[tuple[str, str], ...]:
    """Return (package, index) for the packages that a profile takes from an index by name."""
    return tuple((package.name, package.index) for package in profile.packages if package.index)


def _index_lines(index: Index) -> Iterable[str]:
    yield from ("[[tool.uv.index]]", f"name = {_string(index.name)}", f"url = {_string(index.url)}")
    yield f"default = {_boolean(index.default)}"
    yield f"explicit = {_boolean(index.explicit)}"
    if index.flat:
        yield 'format = "flat"'


def _string(text: str) -> str:
    """Return a basic string of TOML: as in JSON, but for characters beyond the basic plane and for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _strings(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_string, texts))}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"
