"""A venv of a few compiled libraries, laid out as wheels lay theirs."""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from envspec.audit.environment import Environment
from envspec.data.architectures import Arch
from envspec.venv.owners import Owners, installed_packages, owned_files

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


class Workbench:
    """Makes libraries and packages in a venv that has nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / "venv"
        self.site = self.venv / "lib" / f"python{MINOR}" / "site-packages"
        self.cuda = root / "cuda"
        self.site.mkdir(parents=True)
        (self.venv / "bin").mkdir()
        (self.venv / "bin" / "python").symlink_to(sys.executable)
        (self.cuda / "lib64").mkdir(parents=True)

    def library(self, path: str, source: str, *flags: str, soname: str | None = None) -> Path:
        """Compile C into a shared library of site-packages; flags are the linker's and come last."""
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        code = self.root / "source.c"
        code.write_text(source)
        name = target.name if soname is None else soname
        command = ["gcc", "-O1", "-fPIC", "-shared", f"-Wl,-soname,{name}", "-o", str(target), str(code)]
        subprocess.run([*command, *flags], check=True, capture_output=True)
        return target

    def package(self, name: str, version: str, *paths: str, requires: tuple[str, ...] = ()) -> None:
        """Write METADATA, and a RECORD that owns these files of site-packages, as they are now."""
        info = self.site / f"{name}-{version}.dist-info"
        info.mkdir()
        lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
        (info / "METADATA").write_text("\n".join(lines) + "\n\nAbout it\n")
        rows = []
        for path in paths:
            data = (self.site / path).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(data)}\n")
        (info / "RECORD").write_text("".join(rows) + f"{info.name}/RECORD,,\n")

    def owners(self) -> Owners:
        """Whose the files of the packages are."""
        packages = installed_packages(self.site)
        site_packages = self.site.relative_to(self.venv).as_posix()
        owned = owned_files(packages, site_packages, {})
        files = [(path, file.package) for path, file in owned.items()]
        return Owners(site_packages, files, [(p.name, p.version) for p in packages])

    def environment(self, **more: object) -> Environment:
        """The environment as an audit takes it."""
        values: dict[str, object] = {
            "venv": self.venv,
            "cuda": self.cuda,
            "site_packages": f"lib/python{MINOR}/site-packages",
            "machine": platform.machine(),
            "library_path": (str(self.cuda / "lib64"),),
            "arch": Arch(12, 0, "a"),
            "minimum_driver": "580.65.06",
            **more,
        }
        return Environment(**values)  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """An empty venv."""
    return Workbench(tmp_path)
