"""Whose file is this, and is it right: `audit` and `verify` give one answer, whatever happened to an environment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.report.findings import Finding, Report
from tests.support.command import report_of
from tests.support.site import TrustSite, site_packages

Harm = Callable[[Path, Path], object]
Answer = set[tuple[str, str, str]]


def added(subject: str) -> tuple[str, str, str]:
    return ("drift-added", "warning", subject)


def wrong(code: str, subject: str) -> tuple[str, str, str]:
    return (code, "error", subject)


def dist_info(site: Path, directory: str, **files: str) -> None:
    (site / directory).mkdir()
    for name, text in files.items():
        (site / directory / name).write_text(text)


def anew(path: Path, text: str) -> None:
    """Another file under the old name: nothing is written through a link into a cache."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def in_the_same_second(path: Path) -> None:
    """Another content of the same size, with the old time."""
    info, text = path.stat(), path.read_text()
    anew(path, text[::-1])
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def to_another_version(site: Path, *, keep: bool) -> None:
    if not keep:
        shutil.rmtree(site / "app-1.0.dist-info")
    dist_info(site, "app-2.0.dist-info", RECORD="app/late.py,,\napp/new.py,,\n", INSTALLER="pip\n")
    anew(site / "app/late.py", "late = 2\n")
    anew(site / "app/new.py", "new = 2\n")


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


CASES: dict[str, tuple[Harm, Answer]] = {
    "nothing": (lambda out, site: None, set()),
    "byte code": (lambda out, site: anew(site / "app/__pycache__/late.cpython-312.pyc", ""), set()),
    "byte code out of its place": (lambda out, site: anew(site / "app/late.pyc", ""), {added("venv")}),
    "another size": (
        lambda out, site: anew(site / "app/late.py", "late = 2\n# more\n"),
        {wrong("drift-changed", "app")},
    ),
    "another content": (
        lambda out, site: in_the_same_second(site / "app/late.py"),
        {wrong("drift-changed", "app")},
    ),
    "other permissions": (
        lambda out, site: (site / "app/late.py").chmod(0o600),
        {wrong("drift-changed", "app")},
    ),
    "a link for a file": (
        lambda out, site: relink(site / "lib/old.py", "__init__.py"),
        {wrong("drift-changed", "lib")},
    ),
    "the file of the package that was not to have it": (
        lambda out, site: anew(site / "shared/__init__.py", "owner = 'first'\n"),
        {wrong("drift-changed", "second")},
    ),
    "a file is gone": (lambda out, site: (site / "lib/old.py").unlink(), {wrong("drift-missing", "lib")}),
    "a directory is gone": (lambda out, site: shutil.rmtree(site / "app"), {wrong("drift-missing", "app")}),
    "a file of nobody": (lambda out, site: anew(site / "app/mine.py", ""), {added("venv")}),
    "a program of nobody": (lambda out, site: anew(out / "venv/bin/mine", ""), {added("venv")}),
    "a file that an installer leaves": (
        lambda out, site: anew(site / "lib-1.0.dist-info/direct_url.json", "{}"),
        {added("venv")},
    ),
    "a package that nobody locked": (
        lambda out, site: (
            dist_info(site, "guest-3.0.dist-info", RECORD="guest.py,,\n"),
            anew(site / "guest.py", ""),
        ),
        {added("guest")},
    ),
    "a package without RECORD": (
        lambda out, site: dist_info(site, "guest-3.0.dist-info", METADATA="Name: guest\n"),
        {added("guest")},
    ),
    "a package with a damaged RECORD": (
        lambda out, site: (
            dist_info(site, "guest-3.0.dist-info"),
            (site / "guest-3.0.dist-info/RECORD").write_bytes(b"\xff"),
        ),
        {added("guest")},
    ),
    "what pip leaves when it is ended": (
        lambda out, site: dist_info(site, "~pp-1.0.dist-info", RECORD="app/late.py,,\n"),
        {added("venv")},
    ),
    "a dist-info inside a package": (
        lambda out, site: (
            (site / "app/_vendor").mkdir(),
            dist_info(site / "app/_vendor", "guest-3.0.dist-info", RECORD=""),
        ),
        {added("venv")},
    ),
    "another version": (
        lambda out, site: to_another_version(site, keep=False),
        {wrong("drift-replaced", "app")},
    ),
    "another version over the locked one": (
        lambda out, site: to_another_version(site, keep=True),
        {wrong("drift-replaced", "app")},
    ),
    "an empty dist-info of another version": (
        lambda out, site: dist_info(site, "app-2.0.dist-info"),
        {wrong("drift-replaced", "app")},
    ),
    "a package was removed": (
        lambda out, site: (shutil.rmtree(site / "lib"), shutil.rmtree(site / "lib-1.0.dist-info")),
        {wrong("drift-replaced", "lib")},
    ),
    "a locked package without RECORD": (
        lambda out, site: (site / "lib-1.0.dist-info/RECORD").unlink(),
        {wrong("drift-missing", "lib")},
    ),
    "a locked package with a damaged RECORD": (
        lambda out, site: anew(site / "lib-1.0.dist-info/RECORD", "\0"),
        {wrong("drift-changed", "lib")},
    ),
    "the interpreter": (lambda out, site: (out / "venv/bin/python").unlink(), {wrong("drift-missing", "uv")}),
    "what envspec wrote": (
        lambda out, site: (site / "zzzz_envspec_generation.pth").unlink(),
        {wrong("drift-missing", "envspec")},
    ),
    "the script": (
        lambda out, site: anew(out / "current/sglang_env.sh", "export X=1\n"),
        {wrong("drift-script", "sglang_env.sh")},
    ),
    "the toolkit": (
        lambda out, site: anew((out / "cuda").resolve() / "include/nv/target", "#error\n"),
        {wrong("drift-toolkit", "cuda")},
    ),
    "a file in the toolkit": (
        lambda out, site: anew((out / "cuda").resolve() / "include/mine.h", ""),
        {("drift-added", "error", "cuda")},
    ),
    "the whole venv": (
        lambda out, site: shutil.rmtree((out / "venv").resolve()),
        {wrong("drift-replaced", name) for name in ("app", "first", "lib", "second", "tool")},
    ),
}


@pytest.fixture(scope="module")
def built(site: TrustSite) -> Path:
    """One environment for all cases, which each copies."""
    return site.made("owned")


def said(report: Report) -> set[Finding]:
    """The findings on whose files are what they were."""
    return {finding for finding in report.findings if finding.code.startswith("drift-")}


@pytest.mark.parametrize("case", CASES)
def test_audit_and_verify_give_one_answer(built: Path, tmp_path: Path, case: str) -> None:
    harm, expected = CASES[case]
    out = tmp_path / "out"
    shutil.copytree(built, out, symlinks=True)
    harm(out, site_packages(out))
    for options in ([], ["--hash"]):
        verified = said(report_of("verify", "--out", out, *options))
        audited = said(report_of("audit", "--out", out, *options))
        assert audited == verified
        kinds = {(f.code, f.severity.value, f.subject) for f in verified}
        assert kinds >= expected and (kinds == expected or case == "the whole venv")
        assert all(f.fix.startswith("envspec repair") for f in verified)


@pytest.mark.parametrize(
    "case", ["an empty dist-info of another version", "a package without RECORD", "the whole venv"]
)
def test_what_is_told_can_be_repaired(site: TrustSite, built: Path, tmp_path: Path, case: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(built, out, symlinks=True)
    CASES[case][0](out, site_packages(out))
    done = site.call("repair", "--prune", "--profile", "good.toml", "--out", out)
    assert (done.code, done.out) == (0, "verify: nothing found\n"), done.err
    assert said(report_of("audit", "--hash", "--out", out)) == set()
