"""What people do wrong and what the world does to them, through the command line: one clear message, nothing lost.

Every case runs against an environment that was built before and asserts the whole of standard error, the exit code, and
that neither the environment nor the locks changed in any way that a file system can tell.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import ENVSPEC, environment, masked, on_disk
from tests.support.disk import small_disk
from tests.support.shells import shells
from tests.support.site import INDEX, Site
from tests.support.wheels import make_wheel

STAGES_TO_CHECK = (
    "profile   {name}: sm_120a, PYTHON, COMPILER (T s)\n"
    "lock      {count} packages, lock {lock} (T s)\n"
    "check     nothing found (T s)\n"
)
BUILT = STAGES_TO_CHECK + (
    "install   {count} packages, {files} files (T s)\n"
    "toolkit   DIGEST: 7 files of 6 packages (T s)\n"
    "script    sglang_env.sh (T s)\n"
    "audit     nothing found (T s)\n"
    "smoke     sm_120a kernel compiled and linked, needs libcudart.so.13, libcuda.so.1 (T s)\n"
    "publish   generation {generation} is current, DIGEST (T s)\n"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The directory that all refusals run in; its name is one that scripts get wrong."""
    site = Site(tmp_path_factory.mktemp("bad input, größer"))
    assert site.build("good.toml") == (
        0,
        "source out/sglang_env.sh\n",
        BUILT.format(name="good", count=6, lock="made", files=43, generation=1),
    )
    return site


@pytest.fixture(autouse=True)
def only_the_good_profile(site: Site) -> Iterator[None]:
    """Each test brings its own profiles and locks and leaves none."""
    yield
    for path in [*site.root.glob("*.toml"), *site.root.glob("*.lock")]:
        if path.stem != "good":
            path.unlink()


def refused(site: Site, *args: str | Path, env: Mapping[str, str | None] | None = None) -> tuple[int, str]:
    """Call it; nothing may have changed. The exit code and the whole of standard error."""
    before = site.untouched()
    done = site.refusal("build", "--python", sys.executable, *args, env=env)
    assert site.untouched() == before
    assert done.out == ""
    return done.code, done.err


# ---- the call and the profile ------------------------------------------------------------------------------------------


def test_no_such_profile(site: Site) -> None:
    assert refused(site, "god.toml") == (
        2,
        "profile   failed after T s\n"
        "error[profile-missing]: there is no profile god.toml\n"
        "  god.toml\n"
        "  fix: did you mean 'good.toml'?\n",
    )
    assert refused(site, "rtx-pro-600") == (
        2,
        "profile   failed after T s\n"
        "error[profile-missing]: there is no profile rtx-pro-600\n"
        "  rtx-pro-600\n"
        "  fix: did you mean 'rtx-pro-6000'?\n",
    )
    assert refused(site, "wheels") == (
        2,
        "profile   failed after T s\n"
        "error[profile-missing]: wheels is a directory, not a profile\n"
        "  wheels\n"
        "  fix: name a .toml file\n",
    )


WRONG_PROFILES = {
    "a string that is not closed": (
        ('"12.0a"', '"12.0a'),
        "error[profile-syntax]: p.toml is not valid TOML: a string is not closed before the end of its line\n"
        "  p.toml, line 2, column 14\n"
        '  | arch = "12.0a\n'
        "  |              ^\n",
    ),
    "an unknown key": (
        ("minimum-driver", "min-driver"),
        "error[profile-unknown-key]: unknown key gpu.min-driver\n"
        "  p.toml\n"
        "  gpu has no such key, and a key that is not read would be a wish not granted\n"
        "  fix: did you mean 'minimum-driver'?\n",
    ),
    "a wrong type": (
        ('"580.65.06"', "580"),
        "error[profile-wrong-type]: gpu.minimum-driver must be a string, not a whole number: 580\n"
        "  p.toml\n"
        '  fix: put it in quotes: "580"\n',
    ),
    "a version that is none": (
        ("[packages]", '[packages]\nlib = "2.*"'),
        "error[profile-value]: packages.lib is not a version: '2.*'\n"
        "  p.toml\n"
        '  fix: did you mean "==2.*"?\n',
    ),
    "a package name with shell code": (
        ("[packages]", '[packages]\n"lib; $(touch pwned)" = "1.0"'),
        "error[profile-value]: packages.'lib; $(touch pwned)' is not a package name\n  p.toml\n",
    ),
    "a package name that is an option": (
        ("[packages]", '[packages]\n--index-url = "1.0"'),
        "error[profile-value]: packages.--index-url is not a package name\n  p.toml\n",
    ),
    "a range of Pythons with shell code": (
        ("[packages]", '[python]\nversions = ">=3.10; $(touch pwned)"\n[packages]'),
        "error[profile-value]: python.versions is not a range of Python versions: '>=3.10; $(touch pwned)'\n"
        "  p.toml\n",
    ),
    "an index with shell code": (
        ("[packages]", '[[index]]\nname = "x"\nurl = "https://wheels.example/`touch pwned`"\n[packages]'),
        "error[profile-value]: index[0].url is not an address: 'https://wheels.example/`touch pwned`'\n"
        "  p.toml\n"
        "  fix: write what is not ASCII as %xx, a space as %20\n",
    ),
    "a variable that a shell would obey": (
        ("[packages]", "[environment]\nPROMPT_COMMAND = 'touch pwned'\n[packages]"),
        "error[profile-value]: environment.PROMPT_COMMAND belongs to envspec or to the shell and cannot be set by a profile\n"
        "  p.toml\n",
    ),
    "a variable name with shell code": (
        ("[packages]", "[environment]\n'A=1;touch pwned' = 'x'\n[packages]"),
        "error[profile-value]: environment.'A=1;touch pwned' is not the name of an environment variable\n  p.toml\n",
    ),
    "an architecture with shell code": (
        ('"12.0a"', '"12.0a;touch pwned"'),
        "error[profile-value]: gpu.arch is not a GPU architecture: '12.0a;touch pwned'\n"
        "  p.toml\n"
        "  fix: valid here: ",
    ),
}


@pytest.mark.parametrize("case", WRONG_PROFILES)
def test_a_profile_that_cannot_be_read(site: Site, case: str) -> None:
    change, message = WRONG_PROFILES[case]
    text = site.text()
    assert change[0] in text
    if change[1].startswith("[[index]]"):
        text = text.replace(INDEX, "")
    (site.root / "p.toml").write_text(text.replace(*change, 1), encoding="utf-8")
    code, err = refused(site, "p.toml")
    assert code == 2
    expected = f"profile   failed after T s\n{message}"
    assert err == expected or (message.endswith("valid here: ") and err.startswith(expected))
    assert not list(site.root.rglob("pwned"))


def test_a_profile_name_with_a_line_break(site: Site) -> None:
    name = "a\n# machines: x86_64\nevil.toml"
    shutil.copy(site.root / "good.toml", site.root / name)
    assert refused(site, name) == (
        2,
        "profile   failed after T s\n"
        "error[profile-name]: a profile cannot be named 'a\\n# machines: x86_64\\nevil.toml'\n"
        "  PROFILE\n"
        "  the name holds a control character or a letter that cannot be printed\n"
        "  fix: rename the file\n",
    )


WRONG_CALLS = {
    ("build", "good.toml", "--lokced"): (
        "Usage: envspec build [OPTIONS] PROFILE\n"
        "Try 'envspec build --help' for help.\n\n"
        "Error: No such option '--lokced'. Did you mean '--locked'?\n"
    ),
    ("build",): (
        "Usage: envspec build [OPTIONS] PROFILE\n"
        "Try 'envspec build --help' for help.\n\n"
        "Error: Missing argument 'PROFILE'.\n"
    ),
    ("build", "good.toml", "--locked", "--frozen"): (
        "Usage: envspec build [OPTIONS] PROFILE\n"
        "Try 'envspec build --help' for help.\n\n"
        "Error: --locked and --frozen exclude each other\n"
    ),
    ("run",): (
        "Usage: envspec run [OPTIONS] COMMAND...\n"
        "Try 'envspec run --help' for help.\n\n"
        "Error: Missing argument 'COMMAND...'.\n"
    ),
    ("run", "--out", "nowhere", "--", "true"): (
        "error[output-missing]: nowhere is not an environment that envspec built\n"
        "  fix: build it first: envspec build PROFILE, or name another --out\n"
    ),
    ("lock", "good.toml", "--upgrade-package", "nope"): (
        "lock      failed after T s\n"
        "error[unknown-package]: nope is not in the lock\n"
        "  good.lock\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", WRONG_CALLS, ids=" ".join)
def test_a_call_that_is_wrong(site: Site, call: tuple[str, ...]) -> None:
    before = site.untouched()
    done = site.refusal(*call)
    assert (done.code, done.out) == (2, "")
    # Click words its own complaints a little differently from release to release.
    assert (
        done.err.replace("No such option:", "No such option")
        .replace(": --lokced", " '--lokced'")
        .replace("Did you mean --locked?", "Did you mean '--locked'?")
        == WRONG_CALLS[call]
    )
    assert site.untouched() == before


# ---- what cannot be resolved or installed ------------------------------------------------------------------------------

SPLIT = "for split (markers: platform_machine == 'x86_64' and sys_platform == 'linux')"


def test_a_version_that_does_not_exist(site: Site) -> None:
    site.profile("p", 'lib = "9.9"\n')
    assert refused(site, "p.toml") == (
        2,
        "profile   p: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[no-such-version]: the profile names a version or a package that the index does not have\n"
        "  p.toml\n"
        f"  | No solution found when resolving dependencies {SPLIT}\n"
        "  |   cause: Because there is no version of lib==9.9 and your profile depends on lib==9.9, "
        "we can conclude that your profile's requirements are unsatisfiable.\n"
        "  fix: look for the spelling; with resolve.exclude-newer, what is newer does not exist either\n",
    )
    assert not (site.root / "p.lock").exists()


def test_an_unsatisfiable_set(site: Site) -> None:
    site.profile("p", 'app = "2.0"\nlib = "2.0"\n')
    assert refused(site, "p.toml") == (
        2,
        "profile   p: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[unsatisfiable]: no set of versions satisfies the profile\n"
        "  p.toml\n"
        f"  | No solution found when resolving dependencies {SPLIT}\n"
        "  |   cause: Because all versions of app depend on lib==1.0 and your profile depends on app==2.0, "
        "we can conclude that your profile depends on lib==1.0.\n"
        "  |          And because your profile depends on lib==2.0, "
        "we can conclude that your profile's requirements are unsatisfiable.\n"
        "  fix: change one of the versions named above in the profile\n",
    )


def test_an_index_directory_that_is_not_there(site: Site) -> None:
    site.profile("p", index=INDEX.replace('"wheels"', '"whels"'))
    assert refused(site, "p.toml") == (
        2,
        "profile   p: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[index-missing]: a directory of wheels cannot be read\n"
        "  p.toml\n"
        "  | Failed to read `--find-links` directory: DIR/whels\n"
        "  |   cause: No such file or directory (os error 2)\n"
        "  fix: check index.url in the profile: a relative directory lies beside the profile\n",
    )


def test_no_network(site: Site) -> None:
    path = site.profile("p", index="")
    path.write_text(path.read_text().replace(site.toolkit, 'lib = "1.0"\n'))
    dead = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "NO_PROXY": "127.0.0.1"}
    assert refused(site, "p.toml", env=dead) == (
        3,
        "profile   p: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[network]: the package index could not be reached\n"
        "  | Failed to fetch: http://127.0.0.1:9/simple/lib/\n"
        "  |   cause: error sending request for url (http://127.0.0.1:9/simple/lib/)\n"
        "  |   cause: client error (Connect)\n"
        "  |   cause: tcp connect error\n"
        "  |   cause: Connection refused (os error 111)\n"
        "  fix: check the network, the proxy variables and the index of your uv configuration; "
        "what was downloaded is kept, so run again\n",
    )


def test_offline_with_nothing_in_the_cache(site: Site, tmp_path: Path) -> None:
    path = site.profile("p", index="")
    path.write_text(path.read_text().replace(site.toolkit, 'lib = "1.0"\n'))
    assert refused(site, "p.toml", "--offline", env={"UV_CACHE_DIR": str(tmp_path)}) == (
        3,
        "profile   p: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[offline]: not everything needed is in uv's cache, and the network was not to be used\n"
        f"  | No solution found when resolving dependencies {SPLIT}\n"
        "  |   cause: Because lib was not found in the cache and your profile depends on lib==1.0, "
        "we can conclude that your profile's requirements are unsatisfiable.\n"
        "  | hint: Packages were unavailable because the network was disabled. "
        "When the network is disabled, registry packages may only be read from the cache.\n"
        "  fix: run once without --offline\n",
    )


def test_a_wheel_with_other_bytes_than_locked(site: Site) -> None:
    site.profile("p", 'swapped = "1.0"\n')
    wheel = make_wheel(site.root / "wheels", "swapped", "1.0", {"swapped.py": "right = True\n"})
    locked = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert site.envspec("lock", "p.toml").code == 0
    make_wheel(site.root / "wheels", "swapped", "1.0", {"swapped.py": "right = False\n"})
    computed = hashlib.sha256(wheel.read_bytes()).hexdigest()
    code, text = refused(site, "p.toml")
    checked, failed, rest = text.partition("install   failed after T s\n")
    assert "  the index has no swapped-1.0-py3-none-any.whl with the hash that is locked\n" in checked
    assert "error[" not in checked and failed
    assert (code, rest) == (
        1,
        "error[hash-mismatch]: a downloaded file is not the file that was locked\n"
        "  | Failed to download `swapped==1.0`\n"
        "  |   cause: Hash mismatch for `swapped==1.0`\n"
        "  |          Expected:\n"
        f"  |            sha256:{locked}\n"
        "  |          Computed:\n"
        f"  |            sha256:{computed}\n"
        "  fix: if the index was meant to change the file, lock again: envspec lock PROFILE --upgrade-package NAME; "
        "otherwise do not trust this index\n",
    )


def test_locks_that_may_not_be_written_or_are_damaged(site: Site) -> None:
    site.profile("p x")
    assert refused(site, "p x.toml", "--locked") == (
        2,
        "profile   p x: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[lock-missing]: there is no lock p x.lock\n"
        "  --locked\n"
        "  fix: make it: envspec lock 'p x.toml'\n",
    )
    lock = site.root / "p x.lock"
    lock.write_text(
        (site.root / "good.lock").read_text().replace("profile-digest: sha256:", "profile-digest: sha256:0")
    )
    assert refused(site, "p x.toml", "--locked") == (
        2,
        "profile   p x: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[lock-outdated]: p x.lock was made from another version of the profile\n"
        "  --locked\n"
        "  fix: make it again: envspec lock 'p x.toml'\n",
    )
    lock.write_text("<<<<<<< HEAD\n")
    assert refused(site, "p x.toml") == (
        2,
        "profile   p x: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      failed after T s\n"
        "error[lock-damaged]: p x.lock is not a lock that envspec wrote\n"
        "  p x.lock, line 1\n"
        "  it must begin with '# envspec-lock: 1'\n"
        "  fix: restore it from version control, or delete it and run: envspec lock 'p x.toml'\n",
    )


# ---- the machine -------------------------------------------------------------------------------------------------------


def test_no_compiler(site: Site) -> None:
    assert refused(site, "good.toml", env={"PATH": "/nonexistent", "CXX": None}) == (
        3,
        "profile   failed after T s\n"
        "error[no-compiler]: there is no C++ compiler\n"
        "  c++ and g++ on PATH\n"
        "  nvcc and every just-in-time compiler call it for the host side of a kernel\n"
        "  fix: install one: apt-get install g++, or dnf install gcc-c++\n",
    )


def test_a_compiler_that_fails(site: Site, tmp_path: Path) -> None:
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'collect2: fatal error: cannot find ld' >&2\nexit 1\n")
    broken.chmod(0o755)
    site.profile("p", 'lib = "1.0"\n')
    assert site.envspec("lock", "p.toml", "--python", sys.executable).code == 0
    code, err = refused(site, "p.toml", env={"CXX": str(broken)})
    assert code == 1
    assert err.replace(str(tmp_path), "TMP").endswith(
        "script    sglang_env.sh (T s)\n"
        "audit     nothing found (T s)\n"
        "smoke     failed after T s\n"
        "error[smoke-link]: the host compiler did not link the kernel (exit 1)\n"
        "  TMP/c++\n"
        "  collect2: fatal error: cannot find ld\n"
    )


def test_no_python(site: Site, tmp_path: Path) -> None:
    (tmp_path / "c++").symlink_to(shutil.which("c++") or "/no compiler here")
    nowhere = {
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
        "PYENV_ROOT": str(tmp_path),
        "UV_PYTHON_INSTALL_DIR": str(tmp_path),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }
    before = site.untouched()
    done = site.envspec("build", "good.toml", env=nowhere)
    assert done == (
        2,
        "",
        "profile   failed after T s\n"
        "error[no-python]: no Python <3.14,>=3.10 was found\n"
        "  good.toml: python.versions\n"
        "  looked on PATH, in uv's own interpreters and in pyenv's\n"
        "  fix: install one (uv python install 3.12) or pass --python PATH\n",
    )
    assert site.untouched() == before


WRONG_PYTHONS = {
    "3.9": (
        "error[python-outside-range]: Python 3.9 is not a CPython that the profile admits\n"
        "  --python\n"
        "  python.versions of good.toml is <3.14,>=3.10\n"
        "  fix: name another interpreter, or widen python.versions and lock again\n"
    ),
    "/nonexistent/python": (
        "error[python-broken]: /nonexistent/python is not a working Python\n"
        "  --python\n"
        "  No such file or directory\n"
        "  fix: name another interpreter: --python PATH\n"
    ),
    "/bin/true": (
        "error[python-broken]: /bin/true is not a working Python\n"
        "  --python\n"
        "  it does not answer as a Python does\n"
        "  fix: name another interpreter: --python PATH\n"
    ),
    "$(touch pwned)": (
        "error[no-python]: there is no Python '$(touch pwned)'\n"
        "  --python\n"
        "  fix: name a version such as 3.12, a command on PATH or the path of an interpreter\n"
    ),
}


@pytest.mark.parametrize("python", WRONG_PYTHONS)
def test_a_python_that_will_not_do(site: Site, python: str) -> None:
    before = site.untouched()
    done = site.refusal("build", "good.toml", "--python", python)
    assert done == (2, "", f"profile   failed after T s\n{WRONG_PYTHONS[python]}")
    assert site.untouched() == before


# ---- the output directory ----------------------------------------------------------------------------------------------


def test_an_output_that_is_a_file_or_below_one(site: Site) -> None:
    (site.root / "a file").write_text("mine")
    assert refused(site, "good.toml", "--out", "a file") == (
        2,
        "profile   failed after T s\n"
        "error[output-not-directory]: a file is a file\n"
        "  --out\n"
        "  fix: name a directory: --out DIR\n",
    )
    assert refused(site, "good.toml", "--out", "a file/out") == (
        3,
        "profile   failed after T s\n"
        "error[output-unwritable]: cannot write to a file/out: Not a directory\n"
        "  a file/out\n"
        "  fix: name a directory that you may write to: --out DIR\n",
    )
    assert (site.root / "a file").read_text() == "mine"


def test_an_output_where_nobody_may_write(site: Site) -> None:
    # Root may write anywhere but here.
    assert refused(site, "good.toml", "--out", "/proc/out") == (
        3,
        "profile   failed after T s\n"
        "error[output-unwritable]: cannot write to /proc/out: No such file or directory\n"
        "  /proc/out\n"
        "  fix: name a directory that you may write to: --out DIR\n",
    )


def test_an_output_of_somebody_else(site: Site) -> None:
    thesis = site.root / "thesis"
    thesis.mkdir()
    (thesis / "chapter 1.tex").write_text("mine")
    before = on_disk(thesis)
    assert refused(site, "good.toml", "--out", "thesis") == (
        2,
        "profile   failed after T s\n"
        "error[output-foreign]: thesis is not empty and was not made by envspec\n"
        "  --out\n"
        "  it holds chapter 1.tex\n"
        "  fix: name another directory: --out DIR; envspec deletes nothing that it did not make\n",
    )
    assert on_disk(thesis) == before


def test_a_failing_first_build_of_an_unusable_python_makes_no_output(site: Site) -> None:
    assert site.envspec("build", "good.toml", "--out", "never", "--python", "/bin/true").code == 2
    assert not (site.root / "never").exists()


def test_a_current_directory_that_is_gone(site: Site, tmp_path: Path) -> None:
    call = f'cd {tmp_path} && rmdir {tmp_path} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", call, "sh", *ENVSPEC, "build", str(site.root / "good.toml")],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, masked(done.stderr)) == (
        3,
        "",
        "profile   failed after T s\n"
        "error[no-directory]: the current directory does not exist any more\n"
        "  fix: cd to one that does\n",
    )
    tmp_path.mkdir()


def fill(disk: Path) -> Path:
    """Leave no free byte on a small disk."""
    with contextlib.suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    return disk / "fill"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    with small_disk(tmp_path / "small", "3m") as at:
        yield at


@needs.mounts()
def test_a_full_disk(site: Site, disk: Path) -> None:
    out = disk / "out"
    assert site.build("good.toml", "--out", out).code == 0
    before = on_disk(out)
    make_wheel(site.root / "wheels", "large", "1.0", {"large.bin": os.urandom(8 << 20)})
    site.profile("p", 'large = "1.0"\n')
    done = site.build("p.toml", "--out", out)
    lines = done.err.splitlines()
    assert (done.code, done.out) == (3, "")
    assert lines[3] == "install   failed after T s"
    assert re.fullmatch(
        r"error\[disk-too-small\]: the environment needs 8\.4 MB more in .*, where 2\.\d MB are free",
        lines[4],
    )
    fix = "  fix: free space (envspec gc, uv cache prune), or name another place: --out, UV_CACHE_DIR"
    assert lines[-1] == fix
    assert on_disk(out) == before

    # No byte at all: whoever has nothing to do still finds that out, and a lock that cannot be kept leaves no half file.
    shutil.copy(site.root / "good.toml", disk / "q.toml")
    text = (disk / "q.toml").read_text().replace('"wheels"', f'"{(site.root / "wheels").as_uri()}"')
    (disk / "q.toml").write_text(text)
    fill(disk)
    assert site.build("good.toml", "--out", out) == (
        0,
        f"nothing to do: the environment is up to date\nsource {out}/sglang_env.sh\n",
        "profile   good: sm_120a, PYTHON, COMPILER (T s)\nlock      6 packages, lock unchanged (T s)\n",
    )
    done = site.envspec("lock", disk / "q.toml", "--python", sys.executable)
    assert (done.code, done.out, done.err.replace(str(disk), "SMALL")) == (
        3,
        "",
        "lock      failed after T s\n"
        "error[disk-full]: the disk is full\n"
        "  SMALL/q.lock\n"
        "  fix: free space, or name another --out\n",
    )
    done = site.build("good.toml", "--out", disk / "out 2")
    assert (done.code, done.out, done.err.replace(str(disk), "SMALL")) == (
        3,
        "",
        "profile   failed after T s\n"
        "error[disk-full]: the disk is full\n"
        "  SMALL/out 2/.envspec/owner\n"
        "  fix: free space, or name another --out\n",
    )
    assert on_disk(out) == before
    assert sorted(p.name for p in disk.iterdir()) == ["fill", "out", "out 2", "q.toml"]

    (disk / "fill").unlink()
    assert site.build("good.toml", "--out", disk / "out 2").code == 0


# ---- interruptions -----------------------------------------------------------------------------------------------------


class SlowIndex:
    """An index on this machine whose only wheel is sent once it may be."""

    def __init__(self, directory: Path) -> None:
        self.may_send = threading.Event()
        self.asked = threading.Event()
        wheel = make_wheel(directory / "simple" / "slow", "slow", "1.0")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (directory / "simple" / "slow" / "index.html").write_text(
            f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>'
        )
        outer = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                if self.path.endswith(".whl"):
                    outer.asked.set()
                    outer.may_send.wait(60)
                with contextlib.suppress(OSError):
                    super().do_GET()

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(directory))
        )
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def slow_index(tmp_path: Path) -> Iterator[SlowIndex]:
    """See SlowIndex."""
    index = SlowIndex(tmp_path)
    yield index
    index.may_send.set()
    index.server.shutdown()
    index.server.server_close()


def state(out: Path) -> dict[str, list[str]]:
    """What lies in `.envspec`, by directory."""
    return {p.name: sorted(c.name for c in p.iterdir()) for p in (out / ".envspec").iterdir() if p.is_dir()}


def interrupted(site: Site, args: list[str], env: Mapping[str, str | None], reached: threading.Event | Path,
                number: signal.Signals) -> tuple[int, str]:  # fmt: skip
    """Start a build in a process group of its own, as a terminal does, and signal the group once it got far enough."""
    process = subprocess.Popen(
        [*ENVSPEC, "build", "--python", sys.executable, *args],
        cwd=site.root,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(reached.is_set if isinstance(reached, threading.Event) else reached.exists, process)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    err = process.communicate(timeout=20)[1].decode()
    assert "Traceback" not in err
    return process.returncode, masked(err, site.root)


def nobody_is_left(marker: str) -> bool:
    """Whether no process has the marker among its arguments."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in entry.read_bytes():
                return False
    return True


ENDINGS = {
    signal.SIGINT: (130, "\ninterrupted; the environment that was there before is untouched\n"),
    signal.SIGTERM: (143, ""),
    signal.SIGHUP: (129, ""),
}


@pytest.mark.parametrize("number", ENDINGS, ids=lambda number: number.name)
def test_interrupted_while_installing(
    site: Site, slow_index: SlowIndex, tmp_path: Path, number: signal.Signals
) -> None:
    cache = {"UV_CACHE_DIR": str(tmp_path / "cache"), "NO_PROXY": "127.0.0.1"}
    one = f'[[index]]\nname = "slow"\nurl = "{slow_index.url}"\nexplicit = true\n'
    path = site.profile("p", 'slow = { version = "1.0", index = "slow" }\n', index=INDEX + one)
    path.write_text(path.read_text().replace("exclude-newer = 2026-05-25\n", ""))  # it tells no upload times
    slow_index.may_send.set()
    assert site.envspec("check", "p.toml", env=cache).code == 0  # what a check reads is kept
    assert site.envspec("lock", "p.toml", "--python", sys.executable, env=cache).code == 0
    slow_index.may_send.clear()
    slow_index.asked.clear()
    shutil.rmtree(tmp_path / "cache")
    before, before_state = on_disk(site.root / "out"), state(site.root / "out")

    code, last = ENDINGS[number]
    ended = interrupted(site, ["p.toml"], cache, slow_index.asked, number)
    assert ended == (
        code,
        "profile   p: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      7 packages, lock unchanged (T s)\n"
        "check     1 warning (T s)\n"
        "warning[floating]: the profile names no date: a new lock takes whatever is newest, "
        "of packages that were never tested together\n"
        "  fix: exclude-newer = the day after the release of your main package\n"
        "install   failed after T s\n" + last,
    )
    assert nobody_is_left(str(site.root / "out" / ".envspec" / "work"))
    assert on_disk(site.root / "out") == before
    assert state(site.root / "out") == before_state

    slow_index.may_send.set()
    done = site.build("p.toml", "--out", "after", env=cache)
    assert done.code == 0, done.err


@pytest.mark.parametrize("number", ENDINGS, ids=lambda number: number.name)
def test_interrupted_while_compiling(site: Site, tmp_path: Path, number: signal.Signals) -> None:
    """The compiler calls others, as all compilers do; none of them may go on."""
    reached = tmp_path / "reached"
    compiler = tmp_path / "slow c++"
    compiler.write_text(f"#!/bin/sh\ntouch '{reached}'\nsleep 4{number.value}.{os.getpid()}\n")
    compiler.chmod(0o755)
    wrapper = tmp_path / "c++"
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *-shared*) \'{compiler}\' ;; *) exec /usr/bin/env c++ "$@" ;; esac\n'
    )
    wrapper.chmod(0o755)
    site.profile("p", 'lib = "2.0"\n')
    assert site.envspec("lock", "p.toml", "--python", sys.executable).code == 0
    before, before_state = on_disk(site.root / "out"), state(site.root / "out")

    code, last = ENDINGS[number]
    ended = interrupted(site, ["p.toml"], {"CXX": str(wrapper)}, reached, number)
    assert ended == (
        code,
        STAGES_TO_CHECK.format(name="p", count=7, lock="unchanged") + "install   7 packages, 50 files (T s)\n"
        "toolkit   DIGEST: 7 files of 6 packages (T s)\n"
        "script    sglang_env.sh (T s)\n"
        "audit     nothing found (T s)\n"
        "smoke     failed after T s\n" + last,
    )
    assert nobody_is_left(f"sleep\x004{number.value}.{os.getpid()}")
    assert on_disk(site.root / "out") == before
    assert state(site.root / "out") == before_state
    assert site.build("p.toml", "--out", "after").code == 0


def test_a_second_build_waits_for_the_first(site: Site, tmp_path: Path) -> None:
    reached, go_on = tmp_path / "reached", tmp_path / "go on"
    compiler = tmp_path / "c++"
    compiler.write_text(
        f"#!/bin/sh\ncase \"$*\" in *-shared*) touch '{reached}'; while [ ! -e '{go_on}' ]; do sleep 0.02; done ;; esac\n"
        'exec c++ "$@"\n'
    )
    compiler.chmod(0o755)
    command = [*ENVSPEC, "build", "--python", sys.executable, "good.toml", "--out", "shared"]
    first = subprocess.Popen(
        command, cwd=site.root, env=environment({"CXX": str(compiler)}), stderr=subprocess.DEVNULL, text=True
    )
    until(reached.exists, first)
    second = subprocess.Popen(
        command, cwd=site.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert second.stderr is not None
    assert second.stderr.readline().startswith("profile   good: sm_120a")
    waiting = second.stderr.readline().replace(str(site.root), "DIR")
    assert re.fullmatch(
        rf"waiting for process {first.pid} on '.+' since \d\d:\d\d:\d\d, which builds into DIR/shared\n",
        waiting,
    )
    go_on.touch()
    assert first.wait(timeout=30) == 0
    out, err = second.communicate(timeout=30)
    assert (second.returncode, out) == (
        0,
        "nothing to do: the environment is up to date\nsource shared/sglang_env.sh\n",
    )
    assert masked(err) == "lock      6 packages, lock unchanged (T s)\n"


def until(reached: Callable[[], bool], process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Wait until a running build got that far."""
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline and process.poll() is None, "the build never got there"
        time.sleep(0.01)


def test_killed_outright_is_swept_by_the_next_build(site: Site, tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    compiler = tmp_path / "c++"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *-shared*) touch \'{reached}\'; exec sleep 5 ;; esac\nexec c++ "$@"\n'
    )
    compiler.chmod(0o755)
    site.profile("p", 'lib = "2.0"\n')
    code, _ = interrupted(
        site,
        ["p.toml", "--out", "killed"],
        {"CXX": str(compiler), "TMPDIR": str(tmp_path)},
        reached,
        signal.SIGKILL,
    )
    assert code == -signal.SIGKILL
    assert state(site.root / "killed")["generations"] == ["1"]
    assert not (site.root / "killed" / "current").is_symlink()
    assert site.build("good.toml", "--out", "killed").code == 0
    after = state(site.root / "killed")
    assert after["generations"] == ["1"] and "work" not in after
    assert not (site.root / "killed" / ".envspec" / "holder").exists()


# ---- nothing in a profile is ever executed -----------------------------------------------------------------------------

HOSTILE = """$(touch pwned) `touch pwned` "; touch pwned; " '; touch pwned; ' \\ $HOME ~ * é 😀"""


@pytest.mark.parametrize("shell", shells("bash", "dash", "zsh"))
def test_values_and_names_arrive_and_run_nothing(site: Site, shell: str) -> None:
    value = f"{HOSTILE}\nline two\t\x1b[31m"
    name = 'it\'s "$(touch pwned)" `touch pwned`; touch pwned #'
    toml = "".join(f"\\u{ord(c):04x}" if c in '"\\\n\t\x1b' else c for c in value)
    site.profile(name, more=f'[environment]\nHOSTILE = "{toml}"\n')
    assert site.build(f"{name}.toml", "--out", "hostile $(touch pwned)").code == 0
    out = site.root / "hostile $(touch pwned)"
    shown = 'printf "%s" "$HOSTILE"'
    for script in ("sglang_env.sh", "venv/bin/activate"):
        if script == "venv/bin/activate" and shell == "dash":
            continue  # uv's script is for bash and zsh
        done = subprocess.run(
            [shell, "-c", f'. "$1"; {shown}', shell, str(out / script)],
            cwd=site.root,
            env=environment({"HOSTILE": None}),
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == (value if script == "sglang_env.sh" else "")
    done_run = site.envspec("run", "--out", out, "--", "sh", "-c", shown)
    assert done_run == (0, value, "")
    assert not list(site.root.rglob("pwned"))
