"""Publishing a generation: the manifest is built, with the environment digest, and written last."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec

from envspec.activation.script import script_sha256
from envspec.activation.startup_pth import pth_files
from envspec.activation.values import ScriptValues
from envspec.fs import file_sha256
from envspec.host.python import ChosenPython
from envspec.lock import Lock
from envspec.lock.selection import needed_files
from envspec.output.generations import Generation, Output
from envspec.output.manifest import BuildInputs, Manifest, ManifestPackage, TreeRow, encode
from envspec.profile import Profile
from envspec.report.errors import StageError, UsageError
from envspec.report.findings import Finding
from envspec.toolkit.layout import STUB, ToolkitTree
from envspec.venv.install import Venv
from envspec.venv.inventory import Inventory, StatCache, environment_digest, tree_stats, with_own_files
from envspec.venv.owners import ENVSPEC


class BuiltManifest(msgspec.Struct, frozen=True):
    """A manifest that is ready to be published, with the encoded stat cache that belongs to it."""

    manifest: Manifest
    stat_cache: bytes


def build_manifest(
    *,
    profile: Profile,
    lock: Lock,
    python: ChosenPython,
    inputs: BuildInputs,
    venv: Venv,
    tree: ToolkitTree,
    values: ScriptValues,
    findings: tuple[Finding, ...],
    uv_version: str,
    generation: Generation,
    output: Output,
) -> BuiltManifest:
    """Write down what a finished generation was made from and holds."""
    inventory = with_own_files(
        venv.inventory, venv.path, [f"{values.site_packages}/{name}" for name in pth_files()]
    )
    toolkit = tree_rows(tree, output.toolchains_dir / values.toolchain)
    manifest = Manifest(
        digest=digest_of(inventory, python, toolkit, script_sha256(values)),
        profile=profile.name,
        built=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        inputs=inputs,
        arch=profile.gpu.arch.dotted,
        minimum_driver=profile.gpu.minimum_driver,
        toolchain=tree.digest,
        toolkit_packages=tree.owners(),
        script=values,
        script_sha256=file_sha256(generation.script),
        uv=uv_version,
        packages=tuple(
            ManifestPackage(p.name, p.version, f.filename, f.sha256, f.size)
            for p, f in needed_files(lock, python)
        ),
        winners=venv.winners,
        precedence=profile.precedence,
        findings=findings,
        allowed=inputs.allowed,
        toolkit=toolkit,
        files=inventory.rows,
    )
    at = output.toolchains_dir / values.toolchain
    return BuiltManifest(manifest, msgspec.msgpack.encode(StatCache(inventory.stats, tree_stats(at))))


def digest_of(
    inventory: Inventory, python: ChosenPython, toolkit: tuple[TreeRow, ...], script_sha256: str
) -> str:
    """The environment digest of what is on disk."""
    return environment_digest(
        inventory.rows,
        python_minor=python.minor,
        machine=python.machine,
        toolchain=hashlib.sha256(msgspec.json.encode(toolkit)).hexdigest(),
        script_sha256=script_sha256,
    )


def tree_rows(tree: ToolkitTree, at: Path) -> tuple[TreeRow, ...]:
    """The toolkit tree as the manifest lists it."""
    rows = [TreeRow(f.to, f.sha256, "", f.owner) for f in tree.files]
    rows += [TreeRow(link.to, "", link.target, ENVSPEC) for link in tree.links]
    rows.append(TreeRow(STUB, file_sha256(at / STUB), "", ENVSPEC))
    return tuple(sorted(rows, key=lambda r: r.path))


def require_digest(found: str, expected: str | None) -> None:
    """Raises StageError `digest-differs` where a digest was expected and another one came out."""
    if expected is None or found == expected:
        return
    if not expected.startswith("sha256:") or len(expected) != len("sha256:") + 64:
        raise UsageError(
            "digest-malformed",
            f"{expected!r} is not an environment digest",
            where="--expect",
            fix="envspec digest prints one: sha256: and 64 hexadecimal digits",
        )
    raise StageError(
        "digest-differs",
        f"the environment's digest is {found}",
        where=f"--expect {expected}",
        why="the same profile, lock and Python minor give the same digest everywhere; one of them is another here",
        fix="compare with the other environment: envspec diff, on the two manifests",
    )


def publish(built: BuiltManifest, generation: Generation, output: Output) -> None:
    """Write the manifest and the stat cache, sync, and switch."""
    output.publish(generation, encode(built.manifest), built.stat_cache)
