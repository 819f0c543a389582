"""check, why and match as people call them: what they print, and their exit codes. No network but this machine's own."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from tests.support.index import serve_index
from tests.support.site import Site
from tests.support.texts import without_more
from tests.support.wheels import make_wheel


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with a profile `asked`, two packages of which require a third, and `app`, which holds an old `lib`."""
    site = Site(tmp_path_factory.mktemp("questions, größer"))
    wheels = site.root / "wheels"
    for version in ("1.0", "2.0"):
        make_wheel(wheels, "leaf", version)
    make_wheel(wheels, "branch", "1.0", requires=["leaf>=1", "lib"])
    make_wheel(wheels, "twig", "1.0", requires=["leaf<2"])
    for name in ("base", "cu13"):
        files = {"nvidia_cutlass_dsl/cutlass.py": f"# {name}\n", f"{name}.py": ""}
        make_wheel(wheels, f"nvidia-cutlass-dsl-libs-{name}", "4.5.1", files)
    site.profile("asked", 'branch = "1.0"\ntwig = "1.0"\n')
    assert site.envspec("lock", "asked.toml").code == 0
    return site


def test_why_names_every_path_to_the_profile(asked: Site) -> None:
    assert asked.refusal("why", "Leaf", "asked.toml") == (
        0,
        "leaf 1.0 <- branch 1.0 (>=1) <- your profile\nleaf 1.0 <- twig 1.0 (<2) <- your profile\n",
        "",
    )
    assert asked.refusal("why", "branch", "asked.toml").out == "branch 1.0 <- your profile (==1.0)\n"


def test_why_not(asked: Site) -> None:
    assert asked.refusal("why", "leef", "asked.toml") == (
        2,
        "",
        "error[unknown-package]: leef is not in the set\n  asked.lock\n  fix: did you mean 'leaf'?\n",
    )


def test_a_check_of_what_is_not_locked_yet_writes_nothing(asked: Site) -> None:
    asked.profile("new", 'twig = "1.0"\n')
    before = sorted(asked.root.iterdir())
    done = asked.refusal("check", "new.toml")
    assert (done.code, done.out) == (0, "check: nothing found\n")
    assert sorted(asked.root.iterdir()) == before


def test_a_fix_is_shown_and_written(asked: Site) -> None:
    libs = "".join(f'nvidia-cutlass-dsl-libs-{name} = "4.5.1"\n' for name in ("base", "cu13"))
    path = asked.profile("p", libs)
    path.write_text("# mine\n" + path.read_text())
    before = path.read_text()
    done = asked.refusal("check", "p.toml")
    assert done.code == 1 and "error[file-conflict]: " in done.out and path.read_text() == before
    done = asked.refusal("check", "p.toml", "--fix")
    assert done.code == 0, done
    assert "+++ p.toml" in done.err + done.out
    after = path.read_text()
    assert after.startswith("# mine\n") and 'precedence = ["nvidia-cutlass-dsl-libs-cu13"]' in after
    assert asked.refusal("check", "p.toml").code == 0


def test_where_no_fix_is_known_nothing_is_written(asked: Site) -> None:
    wheels = asked.root / "wheels"
    for name in ("first", "second"):
        make_wheel(wheels, name, "1.0", {"shared/code.py": f"# {name}\n"})
    path = asked.profile("p", 'first = "1.0"\nsecond = "1.0"\n')
    before = path.read_text()
    done = asked.refusal("check", "p.toml", "--fix")
    assert done.code == 1 and done.out.startswith("nothing to fix: no error has a known fix\n")
    assert path.read_text() == before


SYMBOLS = {
    "1.0": "_ZN2at4cuda24getCurrentCUDABlasHandleEv",  # torch up to 2.11.0
    "1.1": "_ZN2at4cuda24getCurrentCUDABlasHandleEb",  # torch from 2.12.0 on
    "1.2": "cudaMalloc",
}


def test_match(asked: Site, tmp_path: Path) -> None:
    for version, symbol in SYMBOLS.items():
        subprocess.run(
            ["c++", "-x", "c", "-shared", "-fPIC", "-o", tmp_path / "made.so", "-"],
            input=f"int {symbol}(void);\nint own(void) {{ return {symbol}(); }}\n",
            text=True,
            check=True,
        )
        make_wheel(
            tmp_path / "wheels",
            "my-kernels",
            version,
            {"my_kernels/ops.so": (tmp_path / "made.so").read_bytes()},
            requires=["torch"],
            tag=f"py3-none-linux_{platform.machine()}",
        )
    make_wheel(tmp_path / "wheels", "torch", "2.11.0")
    with serve_index(tmp_path / "wheels") as index:
        env = {"UV_DEFAULT_INDEX": index.url, "NO_PROXY": "127.0.0.1"}
        done = asked.refusal("match", "my-kernels", "--torch", "2.11.0", env=env)
        assert (done.code, done.out) == (
            0,
            "version          uploaded    declares     fits torch (by symbols)\n"
            "1.2              2026-01-01  any          any: imports nothing from torch\n"
            "1.1              2026-01-01  any          no   2.12.0 and later\n"
            "1.0              2026-01-01  any          yes  2.8.0 to 2.11.0\n",
        )
        done = asked.refusal("match", "my-kernels", "--torch", "1.0", env=env)
        assert (
            done.code == 2
            and "error[unknown-torch]: envspec does not know what torch 1.0 exports" in done.err
        )
        done = asked.refusal("match", "not-there", env=env)
        assert done.code == 2 and without_more(done.err).startswith(
            "match     failed after T s\nerror[unknown-package]"
        )
