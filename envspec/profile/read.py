"""From TOML to a `Profile`: which keys exist, what they may hold, and how one profile extends another.

Reading is strict on purpose: a misspelt key that is silently ignored costs its user a day.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from envspec.data.architectures import find_known, known_archs, parse_arch
from envspec.data.gpus import gpu_typed
from envspec.data.profile_values import values_of
from envspec.data.reserved_variables import settable
from envspec.data.toolkit_components import components, first_major_with
from envspec.profile.load import load_with_bases
from envspec.profile.model import CudaRequest, Gpu, Index, Override, PackageRequest, Profile, PythonRequest
from envspec.profile.strict import Table, nearest, show
from envspec.profile.values import (
    NAME,
    admits,
    moment,
    package_name,
    package_request,
    requested_version,
    size_in_bytes,
    specifier_set,
)

_DRIVER = re.compile(r"\d{3,4}(\.\d{1,4}){0,2}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_TOOLKIT = re.compile(r"\d{2}\.\d{1,2}\.\d{1,2}(\.\d{1,2})?")


def read_profile(path: Path, text: str | None = None) -> Profile:
    """Read and check the profile at `path`; `text` stands in for the file's content if it is given.

    Raises UsageError (`profile-*`) for anything the user can fix in a profile, ExternalError (`profile-unreadable`)
    if the file cannot be read.
    """
    path = Path(path)
    loaded = load_with_bases(path, text)
    profile = _Reader(path, loaded.values).profile(loaded.sources)
    return msgspec.structs.replace(profile, old_keys=loaded.old_keys)


class _Reader:
    """Reads one merged TOML document. One method a section; each closes the tables it opened."""

    def __init__(self, path: Path, values: dict[str, Any]) -> None:
        self.path = path
        self.top = Table(path, values)

    def profile(self, sources: tuple[Path, ...]) -> Profile:
        python = self._python()
        indexes = self._indexes()
        machines, exclude_newer, allow_sdists = self._resolve()
        memory_per_job, memory_headroom = self._jobs()
        profile = Profile(
            name=self.path.stem,
            path=self.path,
            sources=sources,
            gpu=self._gpu(),
            python=python,
            cuda=self._cuda(),
            packages=self._packages(indexes),
            overrides=self._overrides(),
            indexes=indexes,
            machines=machines,
            exclude_newer=exclude_newer,
            allow_sdists=allow_sdists,
            precedence=self._install(),
            memory_per_job=memory_per_job,
            memory_headroom=memory_headroom,
            environment=self._environment(),
        )
        self.top.close()
        return profile

    def _gpu(self) -> Gpu:
        table = self.top.table("gpu")
        if table is None:
            self.top.fail("gpu", "is missing", code="profile-missing-key", fix='add: [gpu]\narch = "12.0a"')
        text = table.need("arch", str, 'arch = "12.0a"')
        arch = parse_arch(text)
        known = [f"{row.arch}{v}" for row in known_archs() for v in ("", *row.variants)]
        if arch is None:
            gpu = gpu_typed(text)
            fix = f'the {gpu.name} has: arch = "{gpu.compiles_for}"' if gpu else nearest(text, known)
            table.fail("arch", f"is not a GPU architecture: {show(text)}", fix=fix)
        if find_known(arch) is None:
            table.fail(
                "arch",
                f"is not an architecture of any released GPU: {show(text)}",
                fix=nearest(arch.dotted, known),
            )
        driver = table.get("minimum-driver", str, "") or ""
        if driver and not _DRIVER.fullmatch(driver):
            table.fail(
                "minimum-driver", f"is not a driver version: {show(driver)}", fix='for example "580.65.06"'
            )
        table.close()
        return Gpu(arch=arch, minimum_driver=driver)

    def _python(self) -> PythonRequest:
        table = self.top.table("python") or Table(self.path, {}, "python")
        versions = table.get("versions", str, ">=3.10,<3.14") or ""
        specifiers = table.parsed("versions", versions, specifier_set, "a range of Python versions")
        known = values_of("python.versions")
        minors = tuple(m for m in known if admits(specifiers, m))
        if not minors:
            table.fail(
                "versions",
                f"admits no Python that envspec knows: {show(versions)}",
                fix=f"it knows {known[0]} to {known[-1]}",
            )
        default = "3.12" if "3.12" in minors else minors[-1]
        prefer = table.get("prefer", str, default) or default
        if prefer not in minors:
            table.fail("prefer", f"is outside python.versions: {show(prefer)}", fix=nearest(prefer, minors))
        table.close()
        return PythonRequest(versions=str(specifiers), prefer=prefer, minors=minors)

    def _cuda(self) -> CudaRequest | None:
        table = self.top.table("cuda")
        if table is None:
            return None
        toolkit = table.need("toolkit", str, 'toolkit = "13.2.1"')
        if not _TOOLKIT.fullmatch(toolkit):
            table.fail(
                "toolkit", f"is not a CUDA toolkit release: {show(toolkit)}", fix='for example "13.2.1"'
            )
        first = first_major_with("nvcc")
        if int(toolkit.partition(".")[0]) < first:
            table.fail(
                "toolkit",
                f"is a release whose wheels hold no compiler: {show(toolkit)}",
                fix=f'wheels hold nvcc since CUDA {first}; for example "13.0.2" or "13.2.1"',
            )
        default = tuple(row.component for row in components() if row.jit)
        known = values_of("cuda.components")
        wanted = table.strings("components")
        for position, component in enumerate(wanted or ()):
            if component not in known:
                table.fail(
                    f"components[{position}]",
                    f"is not a part of the CUDA toolkit: {show(component)}",
                    fix=nearest(component, known),
                )
        table.close()
        return CudaRequest(toolkit=toolkit, components=tuple(dict.fromkeys(wanted or default)))

    def _packages(self, indexes: tuple[Index, ...]) -> tuple[PackageRequest, ...]:
        table = self.top.table("packages")
        if table is None:
            self.top.fail(
                "packages",
                "is missing",
                code="profile-missing-key",
                fix='add: [packages]\ntorch = "2.11.0+cu130"',
            )
        names = [index.name for index in indexes]
        return tuple(
            sorted(
                (package_request(table, key, value, names) for key, value in table.items()),
                key=lambda p: p.name,
            )
        )

    def _overrides(self) -> tuple[Override, ...]:
        found = []
        for table in self.top.tables("override"):
            name = package_name(table, "name", table.need("name", str, 'name = "numpy"'))
            specifier, local = requested_version(
                table, "version", table.need("version", str, 'version = "2.3.5"')
            )
            if local:
                table.fail("version", f"must have no local label: {show(local)}")
            reason = table.need("reason", str, 'reason = "2.4 breaks X, see ..."')
            if not reason.isprintable() or not reason.strip():
                table.fail("reason", f"must be one line of text: {show(reason)}")
            table.close()
            found.append(Override(name=name, specifier=specifier, reason=reason))
        return tuple(sorted(found, key=lambda o: o.name))

    def _indexes(self) -> tuple[Index, ...]:
        found: list[Index] = []
        for table in self.top.tables("index"):
            name = table.need("name", str, 'name = "internal"')
            if not NAME.fullmatch(name):
                table.fail("name", f"is not an index name: {show(name)}")
            if any(name == other.name for other in found):
                table.fail("name", f"is used twice: {show(name)}")
            url = table.need("url", str, 'url = "https://wheels.example/simple"')
            form = table.get("format", str, "simple") or ""
            if form not in ("simple", "flat"):
                table.fail(
                    "format",
                    f"is neither simple nor flat: {show(form)}",
                    fix=nearest(form, ("simple", "flat")),
                )
            index = Index(
                name=name,
                url=self._index_url(table, url),
                default=table.get("default", bool, False) or False,
                explicit=table.get("explicit", bool, False) or False,
                flat=form == "flat",
            )
            table.close()
            found.append(index)
        return tuple(found)

    def _index_url(self, table: Table, url: str) -> str:
        if "://" in url:
            if not re.match(r"https?://[^/]|file:///", url):
                table.fail("url", f"is neither http(s), file nor a directory: {show(url)}")
            if not re.fullmatch(r"[!-~]+", url):
                table.fail(
                    "url",
                    f"is not an address: {show(url)}",
                    fix="write what is not ASCII as %xx, a space as %20",
                )
            return url
        # A relative directory belongs to the profile, not to wherever the command was called.
        return (self.path.parent / url).resolve().as_uri()

    def _resolve(self) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        table = self.top.table("resolve") or Table(self.path, {}, "resolve")
        known = values_of("resolve.machines")
        machines = table.strings("machines")
        machines = known if machines is None else machines
        for position, machine in enumerate(machines):
            if machine not in known:
                table.fail(
                    f"machines[{position}]",
                    f"is not supported: {show(machine)}",
                    fix=nearest(machine, known),
                )
        if not machines:
            table.fail("machines", "is empty", fix=f"name one or both of {', '.join(known)}")
        exclude_newer = moment(table, "exclude-newer")
        names = table.strings("allow-sdists") or ()
        sdists = tuple(sorted(package_name(table, f"allow-sdists[{i}]", n) for i, n in enumerate(names)))
        table.close()
        return tuple(m for m in known if m in machines), exclude_newer, sdists

    def _install(self) -> tuple[str, ...]:
        table = self.top.table("install") or Table(self.path, {}, "install")
        names = table.strings("precedence") or ()
        precedence = tuple(package_name(table, f"precedence[{i}]", name) for i, name in enumerate(names))
        if len(set(precedence)) != len(precedence):
            table.fail("precedence", "names a package twice")
        table.close()
        return precedence

    def _jobs(self) -> tuple[int, int]:
        """Return the bytes that a compile job takes, and those that all of them leave free."""
        table = self.top.table("jobs") or Table(self.path, {}, "jobs")
        text = table.get("memory-per-job", str, "4 GiB") or ""
        size = size_in_bytes(text) or 0
        if size < 64 << 20:
            table.fail(
                "memory-per-job", f"is not a size of at least 64 MiB: {show(text)}", fix='for example "4 GiB"'
            )
        text = table.get("memory-headroom", str, "0") or ""
        headroom = 0 if text == "0" else size_in_bytes(text)
        if headroom is None:
            table.fail("memory-headroom", f"is not a size: {show(text)}", fix='for example "16 GiB", or "0"')
        table.close()
        return size, headroom

    def _environment(self) -> tuple[tuple[str, str], ...]:
        table = self.top.table("environment") or Table(self.path, {}, "environment")
        found = []
        for key, value in table.items():
            if not _VARIABLE.fullmatch(key):
                table.fail(key, "is not the name of an environment variable")
            if not settable(key):
                table.fail(key, "belongs to envspec or to the shell and cannot be set by a profile")
            if not isinstance(value, str):
                table.fail(
                    key,
                    f"must be a string: {show(value)}",
                    code="profile-wrong-type",
                    fix='put it in quotes: "1"',
                )
            if "\0" in value:
                table.fail(key, "holds a NUL character, which no environment can")
            found.append((key, value))
        return tuple(sorted(found))
