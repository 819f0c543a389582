"""An output is verified from its root: what people type, who may write there, the digest and the interpreter."""

from __future__ import annotations

import importlib.util
import marshal
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.integrity import drift
from tests.commands.test_drift import CLEAN, edit_quietly, relink, repair, replace_with
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


def _unchecked(source: Path, text: str) -> None:
    """Byte code that Python runs without a look at its source."""
    (source.parent / "__pycache__").mkdir(exist_ok=True)
    code = compile(text, str(source), "exec")
    flags = (1).to_bytes(4, "little")
    cache = Path(importlib.util.cache_from_source(str(source)))
    cache.write_bytes(importlib.util.MAGIC_NUMBER + flags + bytes(8) + marshal.dumps(code))


def test_byte_code_that_is_not_that_of_its_source(site: TrustSite, out: Path) -> None:
    source = site_packages(out) / "app/late.py"
    subprocess.run([out / "venv/bin/python", "-c", "import app.late"], check=True)
    assert verify(site, out, "--hash") == CLEAN
    _unchecked(source, "late = 'EVIL'\n")
    assert (
        "EVIL"
        in subprocess.run(
            [out / "venv/bin/python", "-c", "import app.late; print(app.late.late)"],
            capture_output=True,
            text=True,
        ).stdout
    )
    code, text = verify(site, out, "--hash")
    assert code == 1
    assert text.startswith("error[drift-bytecode]: 1 file of byte code is not what the source compiles to\n")
    assert repair(site, out, "--hash").code == 0 and verify(site, out, "--hash") == CLEAN
    assert (
        "1.0"
        in subprocess.run(
            [out / "venv/bin/python", "-c", "import app.late; print(app.late.late)"],
            capture_output=True,
            text=True,
        ).stdout
    )


def test_repair_drops_the_byte_code_of_what_it_puts_back(site: TrustSite, out: Path) -> None:
    """An edit of the same size with the old time, imported once: only the byte code keeps it."""
    source = site_packages(out) / "app/late.py"
    info, good = source.stat(), source.read_text()
    replace_with(source, good.replace("1.0", "6.6"))
    os.utime(source, ns=(info.st_atime_ns, info.st_mtime_ns))
    show = [str(out / "venv/bin/python"), "-c", "import app.late; print(app.late.late)"]
    assert subprocess.run(show, capture_output=True, text=True).stdout == "6.6\n"
    assert repair(site, out).code == 0
    assert subprocess.run(show, capture_output=True, text=True).stdout == "1.0\n"
    assert verify(site, out, "--hash") == CLEAN


def test_what_lies_beside_byte_code_is_an_added_file(site: TrustSite, out: Path) -> None:
    strange = site_packages(out) / "app/__pycache__/mine.bin"
    strange.parent.mkdir(exist_ok=True)
    strange.write_bytes(b"")
    code, text = verify(site, out, "--hash")
    assert code == 0 and text.startswith(
        "warning[drift-added]: 1 file beside byte code that is of no source\n"
    )
    strange.unlink()


SHADOWING = (
    "SITE/mine.pth",
    "SITE/sitecustomize.py",
    "SITE/os.py",
    "SITE/app/late.abi3.so",
    "SITE/app/late/__init__.py",
    "bin/nvcc",
    "bin/ninja",
    "bin/c++",
    "bin/python9",
)


@pytest.mark.parametrize("name", SHADOWING)
def test_an_added_file_that_comes_first_is_an_error_of_verify_and_audit(
    site: TrustSite, out: Path, name: str
) -> None:
    venv = (out / "venv").resolve()
    path = venv / name.replace("SITE", site_packages(out).relative_to(venv).as_posix())
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    for command in ("verify", "audit"):
        done = site.call(command, "--out", out)
        assert done.code == 1, (command, done)
        assert "error[drift-shadow]: 1 added file changes what is imported or executed\n" in done.out
    path.unlink()
    if path.name == "__init__.py":
        path.parent.rmdir()
    assert verify(site, out) == CLEAN


@pytest.mark.parametrize("name", ["include/cuda_runtime.h", "lib64/libevil.so"])
def test_cuda_home_belongs_to_envspec_alone(site: TrustSite, out: Path, name: str) -> None:
    path = (out / "cuda").resolve() / f"{name}.new"
    path.write_text("")
    code, text = verify(site, out)
    assert code == 1
    assert text.startswith("error[drift-added]: 1 file in CUDA_HOME that envspec did not put there\n")
    assert repair(site, out, "--prune").code == 0
    assert not path.exists() and verify(site, out, "--hash") == CLEAN


def test_a_build_takes_added_files_out_of_cuda_home(site: TrustSite, out: Path) -> None:
    path = (out / "cuda").resolve() / "include/mine.h"
    path.write_text("")
    assert site.build("good.toml", "--out", out).code == 0
    assert not path.exists() and verify(site, out) == CLEAN


def test_expect_means_bytes(tmp_path: Path) -> None:
    """An archive that was altered in uv's cache, with the old size and time, has the digest of its RECORD."""
    site = TrustSite(tmp_path / "site")
    cache = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    digest = site.digest(str(site.made("first", env=cache)))
    (file,) = (tmp_path / "cache").glob("archive-v0/*/app/late.py")
    edit_quietly(file)
    args = ("build", "--python", sys.executable, "good.toml", "--out", "second", "--expect", digest)
    done = site.call(*args, env=cache)
    assert done.code != 0 and "error[install-corrupt]" in done.err
    assert "app/late.py is not the file that its RECORD names" in done.err
    assert "uv cache clean app" in done.err
    assert not (site.root / "second/current").exists()
