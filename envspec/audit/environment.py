"""What an audit needs to know of an environment: where it lies and what its script sets."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from envspec.activation.process import process_environment
from envspec.activation.values import ScriptValues
from envspec.data.architectures import Arch, parse_arch
from envspec.output.generations import Generation
from envspec.output.manifest import Manifest


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one generation. `site_packages` is relative to `venv`; `library_path` is what the script sets and nothing else."""

    venv: Path
    cuda: Path
    site_packages: str
    machine: str
    library_path: tuple[str, ...]
    arch: Arch
    minimum_driver: str

    @property
    def site(self) -> Path:
        """Return the path of site-packages."""
        return self.venv / self.site_packages

    @property
    def minor(self) -> str:
        """Return the Python minor, as the venv's layout has it: `3.12`."""
        return Path(self.site_packages).parent.name.removeprefix("python")


def describe(
    generation: Generation,
    script: ScriptValues,
    *,
    machine: str,
    arch: Arch,
    minimum_driver: str,
) -> Environment:
    """Describe the environment in a generation, finished or not, as somebody meets it who sources its script in an empty shell."""
    variables = process_environment(script, generation.path, {})
    return Environment(
        venv=generation.venv.resolve(),
        cuda=Path(variables["CUDA_HOME"]),
        site_packages=script.site_packages,
        machine=machine,
        library_path=tuple(p for p in variables.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p),
        arch=arch,
        minimum_driver=minimum_driver,
    )


def of_manifest(generation: Generation, manifest: Manifest) -> Environment:
    """Describe the environment of a finished generation."""
    arch = parse_arch(manifest.arch)
    assert arch is not None, manifest.arch
    return describe(
        generation,
        manifest.script,
        machine=manifest.inputs.machine,
        arch=arch,
        minimum_driver=manifest.minimum_driver,
    )
