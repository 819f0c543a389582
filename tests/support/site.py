"""Directories with an index of tiny wheels, profiles over it, and the environments that envspec builds from them."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from envspec.integrity.drift import find_drift
from envspec.output.directory import current_generation
from envspec.output.manifest import Manifest, read_manifest
from envspec.report.errors import EnvspecError
from tests.support.command import ENVSPEC, Done, environment, envspec, in_process, masked, on_disk
from tests.support.wheels import make_toolkit, make_wheel

PACKAGES = 'app = "1.0"\nlib = "1.0"\nfirst = "1.0"\nsecond = "1.0"\ntool = "1.0"\n'
# What lies in the state directory of an output after a build that passed.
STATE_NAMES = {"generations", "jit", "last", "last-build.log", "lock", "owner", "toolchains"}
WINNERS = '[install]\nprecedence = ["second"]\n'

INDEX = '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'


class Site:
    """A directory with a local index, a profile that was built from it, and its environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.toolkit = make_toolkit(root / "wheels")
        make_wheel(root / "wheels", "lib", "1.0")
        make_wheel(root / "wheels", "lib", "2.0")
        make_wheel(root / "wheels", "app", "2.0", requires=["lib==1.0"])
        self.profile("good")

    def text(self, packages: str = "", more: str = "", *, index: str = INDEX) -> str:
        """A profile's text: the stand-in toolkit, and what a test adds."""
        return (
            '[gpu]\narch = "12.0a"\nminimum-driver = "580.65.06"\n'
            "[resolve]\nexclude-newer = 2026-05-25\n"
            f"[packages]\n{self.toolkit}{packages}{more}{index}"
        )

    def profile(self, name: str, packages: str = "", more: str = "", *, index: str = INDEX) -> Path:
        """Write `NAME.toml`."""
        path = self.root / f"{name}.toml"
        path.write_text(self.text(packages, more, index=index), encoding="utf-8")
        return path

    def envspec(self, *args: str | Path, env: Mapping[str, str | None] | None = None) -> Done:
        """Call the command in this directory, with the interpreter that runs the tests if it is a build."""
        done = envspec(*args, cwd=self.root, env=env)
        assert "Traceback" not in done.err
        return Done(done.code, done.out.replace(str(self.root), "DIR"), masked(done.err, self.root))

    def refusal(self, *args: str | Path, env: Mapping[str, str | None] | None = None) -> Done:
        """As `envspec`, in this process: for calls that end before anything is built."""
        done = in_process(*args, cwd=self.root, env=env)
        return Done(done.code, done.out.replace(str(self.root), "DIR"), masked(done.err, self.root))

    def build(self, *args: str | Path, env: Mapping[str, str | None] | None = None) -> Done:
        """`envspec build` with the interpreter that runs the tests."""
        return self.envspec("build", "--python", sys.executable, *args, env=env)

    def untouched(self) -> dict[str, tuple[object, ...]]:
        """What a failing call must not change: the environment and every lock."""
        return on_disk(self.root / "out", *sorted(self.root.glob("*.lock")))


class TrustSite(Site):
    """A site whose profile `good` has two packages that own one path, a launcher, a script and a library."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        wheels = root / "wheels"
        for version in ("1.0", "2.0"):
            make_wheel(
                wheels,
                "app",
                version,
                {
                    "app/__init__.py": f"version = {version!r}\n",
                    "app/late.py": f"late = {version!r}\n",
                    "app/data/table.txt": "one\n",
                },
                scripts={"app": "app.main:main"},
            )
            make_wheel(
                wheels, "lib", version, {"lib/__init__.py": f"version = {version!r}\n", "lib/old.py": ""}
            )
        make_wheel(wheels, "first", "1.0", {"shared/__init__.py": "owner = 'first'\n", "shared/one.py": ""})
        make_wheel(wheels, "second", "1.0", {"shared/__init__.py": "owner = 'second'\n", "shared/two.py": ""})
        make_wheel(
            wheels,
            "tool",
            "1.0",
            {
                "tool.py": "import sys\ndef main():\n    from app import late\n    print(late.__file__)\n",
                "tool-1.0.data/scripts/hello": "#!python\nprint('hello')\n",
                "tool-1.0.data/data/share/tool/notes.txt": "notes\n",
                "tool_path.pth": "tool_extra\n",
                "tool_extra/extra_module.py": "where = __file__\n",
            },
            scripts={"tool": "tool:main"},
        )
        make_wheel(wheels, "guest", "3.0", {"guest/__init__.py": "", "guest/deep/er.py": ""})
        self.profile("good", PACKAGES, WINNERS)

    def call(self, *args: str | Path, env: Mapping[str, str | None] | None = None, before: str = "") -> Done:
        """Call envspec as it is; `before` is Python code that runs in the process first.

        What builds or ends this process has one of its own.
        """
        if not before and not {"build", "lock", "run", "upgrade"}.intersection(args):
            return in_process(*args, cwd=self.root, env=env)
        command = [*ENVSPEC, *map(str, args)]
        if before:
            command = [
                sys.executable,
                "-c",
                f"import os, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])",
                *command,
            ]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def made(
        self,
        out: str,
        profile: str = "good.toml",
        *,
        env: Mapping[str, str | None] | None = None,
        before: str = "",
    ) -> Path:
        """Build into an output, which must succeed."""
        args = ("build", "--python", sys.executable, profile, "--out", out)
        done = self.call(*args, env=env, before=before)
        assert done.code == 0, done.err
        return self.root / out

    def gc(self, out: str | Path, *, keep: int = 0) -> str:
        """What `envspec gc` prints, without its line on processes that the tests' machine does not show."""
        done = self.call("gc", "--keep", str(keep), "--out", out)
        assert (done.code, done.err) == (0, "")
        return re.sub(
            r"what \d+ process(es)? use cannot be seen by this user, and was not asked\n", "", done.out
        )

    def digest(self, out: str) -> str:
        """What `envspec digest` prints."""
        done = self.call("digest", "--out", out)
        assert done.code == 0 and done.err == ""
        return done.out.strip()

    def manifest(self, out: str) -> Manifest:
        """The current generation's manifest."""
        return read_manifest(self.root / out / "envspec.json")


class Environments:
    """Builds of a site's profile `good`. What a test has done to one is undone by repair, and proven so by its contents.

    An environment that repair does not make whole, or that got another generation, is not used again.
    """

    def __init__(self, site: TrustSite) -> None:
        self._site = site
        self._spare: list[Path] = []
        self._made = 0

    def take(self) -> Path:
        """One that is whole and has one generation."""
        if self._spare:
            return self._spare.pop()
        self._made += 1
        return self._site.made(f"out {self._made}, größer")

    def give_back(self, out: Path) -> None:
        """Take it back if it is as it was."""
        with contextlib.suppress(EnvspecError, OSError):
            output, generation = current_generation(out)
            if [p.name for p in output.generations_dir.iterdir()] != ["1"]:
                return
            _, drift = find_drift(output, generation, check_contents=True)
            if drift or drift.packages:
                for path in drift.added:
                    (generation.venv / path).unlink(missing_ok=True)
                self._site.call("repair", "--prune", "--hash", "--profile", "good.toml", "--out", out)
                _, drift = find_drift(output, generation, check_contents=True)
            state = {p.name for p in output.state.iterdir()}
            planted = any(p.is_symlink() for p in output.state.iterdir())
            if not drift and not drift.packages and state == STATE_NAMES and not planted:
                self._spare.append(out)


def site_packages(out: Path) -> Path:
    """Of the current generation, by its real path."""
    (found,) = (out / "venv").resolve().glob("lib/python3*/site-packages")
    return found
