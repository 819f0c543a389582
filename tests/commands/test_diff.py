"""`envspec diff`: a profile and what was built from it do not differ; what one side cannot know is not compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envspec.output.manifest import read_manifest
from tests.support.site import PACKAGES, WINNERS, TrustSite
from tests.support.wheels import make_wheel

MORE = '[environment]\nNCCL_DEBUG = "INFO"\n[jobs]\nmemory-per-job = "2 GiB"\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> TrustSite:
    """A site with one environment, whose lock holds a package that no Linux needs and one that only old Pythons need."""
    site = TrustSite(tmp_path_factory.mktemp("diff"))
    wheels = site.root / "wheels"
    make_wheel(wheels, "old", "1.0")
    make_wheel(wheels, "asks", "1.0", requires=["old==1.0; python_version < '3.10.0'"])
    site.profile("full", f'{PACKAGES}asks = "1.0"\n', f'{WINNERS}{MORE}[python]\nversions = ">=3.9,<3.15"\n')
    site.made("out", "full.toml")
    return site


def lines(site: TrustSite, *words: str) -> list[str]:
    """What `envspec diff` prints."""
    done = site.call("diff", *words)
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


def test_a_profile_does_not_differ_from_what_was_built_from_it(site: TrustSite) -> None:
    locked = (site.root / "full.lock").read_text()
    assert "\nold==1.0 ; " in locked and "old" not in {p.name for p in site.manifest("out").packages}
    for a, b in (("full.toml", "out"), ("out", "full.toml"), ("full.toml", "1"), ("full.lock", "out")):
        assert lines(site, a, b) == [
            f"{a if a != '1' else 'generation 1'} -> {b if b != '1' else 'generation 1'}",
            "no differences",
        ]
    found = json.loads(site.call("diff", "full.toml", "out", "--json").out)
    assert not any(
        found[part] for part in ("packages", "toolkit", "settings", "findings_gone", "findings_new", "files")
    )


def test_a_profile_does_not_differ_from_itself_or_its_lock(site: TrustSite) -> None:
    for other in ("full.toml", "full.lock"):
        assert lines(site, "full.toml", other) == [f"full.toml -> {other}", "no differences"]


def test_a_manifest_is_the_same_environment_as_itself(site: TrustSite) -> None:
    assert lines(site, "out", "out/envspec.json") == ["out -> out/envspec.json", "the same environment"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('arch = "12.0a"', 'arch = "9.0a"', "  ~ gpu.arch 12.0a -> 9.0a"),
        ("580.65.06", "590.1", "  ~ gpu.minimum-driver 580.65.06 -> 590.1"),
        ('["second"]', '["first"]', "  ~ install.precedence second -> first"),
        ('"2 GiB"', '"4 GiB"', "  ~ jobs.memory-per-job 2147483648 -> 4294967296"),
        ('"2 GiB"', '"2 GiB"\nmemory-headroom = "1 GiB"', "  ~ jobs.memory-headroom 0 -> 1073741824"),
        ('NCCL_DEBUG = "INFO"\n', "", "  - environment.NCCL_DEBUG INFO"),
        ('NCCL_DEBUG = "INFO"', 'NCCL_DEBUG = "WARN"', "  ~ environment.NCCL_DEBUG INFO -> WARN"),
        ('NCCL_DEBUG = "INFO"', 'NCCL_DEBUG = "INFO"\nX = "1"', "  + environment.X 1"),
    ],
)
def test_a_profile_that_was_changed_since_differs_in_that_alone(
    site: TrustSite, old: str, new: str, line: str
) -> None:
    text = (site.root / "full.toml").read_text()
    changed = site.root / "changed.toml"
    changed.write_text(text.replace(old, new))
    assert changed.read_text() != text
    (site.root / "changed.lock").write_text((site.root / "full.lock").read_text())
    assert lines(site, "out", "changed.toml") == ["out -> changed.toml", line]


def test_a_manifest_that_does_not_tell_the_precedence_is_not_compared_in_it(site: TrustSite) -> None:
    text = (site.root / "out" / "envspec.json").read_text()
    older = site.root / "older.json"
    older.write_text(text.replace('"precedence": [\n  "second"\n ],\n', ""))
    assert older.read_text() != text and read_manifest(Path(older)).precedence is None
    assert lines(site, "full.toml", "older.json") == ["full.toml -> older.json", "no differences"]
