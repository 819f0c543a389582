"""Publishing a generation: the manifest is built, with the environment digest, and written last."""

from __future__ import annotations

import time

import msgspec

from envspec.activation.script import script_sha256
from envspec.activation.startup_pth import pth_files
from envspec.activation.values import ScriptValues
from envspec.build.plan import Plan
from envspec.fs import file_sha256, remove_tree
from envspec.integrity.places import places_of
from envspec.lock.ensure import LockOutcome, lock_on_disk
from envspec.lock.selection import needed_files
from envspec.output.generations import Generation
from envspec.output.manifest import BuildInputs, Manifest, ManifestPackage, TreeRow, digest_of, encode
from envspec.report.errors import StageError, UsageError
from envspec.report.findings import Finding
from envspec.report.progress import Progress
from envspec.toolkit.layout import STUB
from envspec.toolkit.toolchain import Toolchain
from envspec.venv.install import Venv
from envspec.venv.inventory import Inventory, StatCache, require_content, tree_stats, with_own_files
from envspec.venv.owners import ENVSPEC


class BuiltGeneration(msgspec.Struct, frozen=True, kw_only=True):
    """Says what the stages made: a generation that only lacks its manifest, and everything that the manifest tells of it."""

    generation: Generation
    inputs: BuildInputs
    lock: LockOutcome
    venv: Venv
    toolchain: Toolchain
    script: ScriptValues
    findings: tuple[Finding, ...]


def publish_generation(plan: Plan, built: BuiltGeneration, progress: Progress) -> str:
    """Make a generation the current one, and with it a lock that was not written yet the profile's. Return its digest.

    Raises StageError `digest-differs`, UsageError `digest-malformed`.
    """
    with progress.stage("publish") as stage:
        stage.detail("building the manifest")
        inventory = with_own_files(
            built.venv.inventory,
            built.venv.path,
            [f"{built.script.site_packages}/{name}" for name in pth_files()],
        )
        manifest = build_manifest(plan, built, inventory)
        require_digest(manifest.digest, plan.request.expected)
        if plan.request.expected is not None:
            stage.detail("reading every file")
            require_content(built.venv.path, inventory.rows)
        places = places_of(plan.output, built.generation, built.script.site_packages, built.script.toolchain)
        cache = StatCache(inventory.stats, tree_stats(built.toolchain.path), places)
        with lock_on_disk(plan.profile, built.lock):
            plan.output.publish(built.generation, encode(manifest), msgspec.msgpack.encode(cache))
        remove_tree(plan.output.work)
        stage.result = f"generation {built.generation.number} is current, {manifest.digest[:19]}"
    return manifest.digest


def build_manifest(plan: Plan, built: BuiltGeneration, inventory: Inventory) -> Manifest:
    """Return the manifest of a generation; `inventory` lists all files of its venv."""
    toolkit = tree_rows(built.toolchain)
    manifest = Manifest(
        digest="",
        profile=plan.profile.name,
        built=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        inputs=built.inputs,
        arch=plan.profile.gpu.arch.dotted,
        minimum_driver=plan.profile.gpu.minimum_driver,
        toolchain=built.toolchain.tree.digest,
        toolkit_packages=built.toolchain.tree.owners(),
        script=built.script,
        script_sha256=file_sha256(built.generation.script),
        neutral_script_sha256=script_sha256(built.script),
        uv=plan.uv.version(),
        packages=tuple(
            ManifestPackage(p.name, p.version, f.filename, f.sha256, f.size)
            for p, f in needed_files(built.lock.lock, plan.python)
        ),
        winners=built.venv.winners,
        precedence=plan.profile.precedence,
        findings=built.findings,
        allowed=built.inputs.allowed,
        toolkit=toolkit,
        files=inventory.rows,
    )
    return msgspec.structs.replace(manifest, digest=digest_of(manifest))


def tree_rows(toolchain: Toolchain) -> tuple[TreeRow, ...]:
    """Return a toolchain's files and links as the manifest lists them."""
    rows = [TreeRow(f.to, f.sha256, "", f.owner) for f in toolchain.tree.files]
    rows += [TreeRow(link.to, "", link.target, ENVSPEC) for link in toolchain.tree.links]
    rows.append(TreeRow(STUB, file_sha256(toolchain.path / STUB), "", ENVSPEC))
    return tuple(sorted(rows, key=lambda r: r.path))


def require_digest(found: str, expected: str | None) -> None:
    """Raise StageError `digest-differs` where a digest was expected and another one came out."""
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
