"""An output is verified from its root: what people type, who may write there, the digest and the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.integrity import drift
from tests.commands.test_drift import CLEAN, relink, repair
from tests.support.site import TrustSite, site_packages
from tests.support.texts import without_more


def verify(site: TrustSite, out: Path, *options: str) -> tuple[int, str]:
    """Exit code and the text; unlike its namesake for files, it does not look through the links of the output."""
    done = site.call("verify", *options, "--out", out)
    return done.code, without_more(done.out)


def _planted(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


ENTRIES: dict[str, tuple[Callable[[Path], object], str]] = {
    "venv leads elsewhere": (
        lambda out: relink(out / "venv", "/usr"),
        "error[drift-entry]: venv leads to /usr instead of current/venv\n",
    ),
    "cuda is gone": (
        lambda out: (out / "cuda").unlink(),
        "error[drift-entry]: cuda is missing\n",
    ),
    "the manifest leads elsewhere": (
        lambda out: relink(out / "envspec.json", "/dev/null"),
        "error[drift-entry]: envspec.json leads to /dev/null instead of current/envspec.json\n",
    ),
    "the script leads elsewhere": (
        lambda out: relink(out / "sglang_env.sh", ".envspec/generations/1/sglang_env.sh"),
        "error[drift-entry]: sglang_env.sh leads to .envspec/generations/1/sglang_env.sh"
        " instead of current/sglang_env.sh\n",
    ),
}

WRITABLE: dict[str, tuple[str, int]] = {
    "the script": (".envspec/generations/1/sglang_env.sh", 0o666),
    "the output": ("", 0o777),
    "the programs": (".envspec/generations/1/venv/bin", 0o777),
    "site-packages": ("SITE", 0o775),
}


@pytest.mark.parametrize("harm", ENTRIES)
def test_an_entry_point_that_leads_elsewhere_is_named_and_put_back(
    site: TrustSite, out: Path, harm: str
) -> None:
    change, text = ENTRIES[harm]
    change(out)
    expected = (1, f"{text}  fix: envspec repair\nverify: 1 error\n")
    assert verify(site, out) == verify(site, out, "--hash") == expected
    done = repair(site, out, "--offline")
    assert (done.code, done.out) == (0, "verify: nothing found\n"), done.err
    assert verify(site, out, "--hash") == CLEAN


def test_a_build_with_nothing_to_do_puts_the_entry_points_back(site: TrustSite, out: Path) -> None:
    relink(out / "venv", "/usr")
    done = site.build("good.toml", "--out", out)
    assert done.code == 0 and "building it again" not in done.err
    assert "put right: venv" in done.err
    assert (out / "venv").readlink() == Path("current/venv")
    assert verify(site, out) == CLEAN


def test_a_file_in_the_place_of_the_script_is_named_and_never_overwritten(site: TrustSite, out: Path) -> None:
    _planted(out / "sglang_env.sh", "echo EVIL\n")
    code, text = verify(site, out)
    assert code == 1
    assert text.startswith("error[drift-entry]: sglang_env.sh is not the link that envspec made\n")
    assert "  fix: move it away, and then: envspec repair\n" in text
    done = site.build("good.toml", "--out", out)
    assert done.code == 1 and "output-foreign" in done.err and "up to date" not in done.out + done.err
    assert (out / "sglang_env.sh").read_text() == "echo EVIL\n"
    done = repair(site, out)
    assert done.code == 1 and "output-foreign" in done.err
    (out / "sglang_env.sh").unlink()
    assert repair(site, out).code == 0 and verify(site, out) == CLEAN


@pytest.mark.parametrize("place", WRITABLE)
def test_a_place_that_others_may_write_to(site: TrustSite, out: Path, place: str) -> None:
    name, mode = WRITABLE[place]
    path = site_packages(out) if name == "SITE" else out / name
    before = path.stat().st_mode
    path.chmod(mode)
    code, text = verify(site, out)
    assert code == 1 and text.startswith(
        "error[drift-writable]: others may write to 1 place that decides what runs\n"
    )
    assert repair(site, out).code == 0
    assert path.stat().st_mode == before and verify(site, out) == CLEAN


def test_a_manifest_with_another_row_is_damaged(site: TrustSite, out: Path) -> None:
    """The digest is computed from the rows; the one that stands in the file is only compared with it."""
    digest = site.digest(str(out))
    manifest = out / ".envspec/generations/1/envspec.json"
    good = manifest.read_text()
    (row,) = [line for line in good.splitlines() if "app/late.py" in line]
    sha256 = row.split('"')[3]
    manifest.write_text(good.replace(sha256, "0" * 64))
    try:
        for command in (["verify"], ["verify", "--hash"], ["digest"], ["audit"], ["diff", "1", "1"]):
            done = site.call(*command, "--out", out)
            assert done.code != 0 and "error[manifest-damaged]" in done.err, (command, done)
        done = site.build("good.toml", "--out", out, "--expect", digest)
        assert done.code == 0 and "building it again" in done.err
    finally:
        manifest.write_text(good)


def test_an_interpreter_that_is_gone_is_no_clean_environment(
    site: TrustSite, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the output differs then: the interpreter lies elsewhere."""
    with monkeypatch.context() as patch:
        patch.setattr(drift, "unusable_python", lambda venv: "leads to /gone, which is not there")
        assert verify(site, out) == (
            1,
            "error[drift-python]: the environment's interpreter leads to /gone, which is not there\n"
            "  fix: install the Python that it was built with again, or build again\nverify: 1 error\n",
        )
    link = (out / "venv/bin/python").parent.resolve() / "python"
    good = str(link.readlink())
    relink(link, str(tmp_path / "gone"))
    done = site.call("run", "--out", out, "--", "python", "-c", "1")
    assert (
        done.code == 2
        and f"error[environment-python]: the environment's interpreter leads to {tmp_path}/gone" in done.err
    )
    relink(link, good)
    assert repair(site, out).code == 0 and verify(site, out) == CLEAN
