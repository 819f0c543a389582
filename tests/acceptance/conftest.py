"""The real environments: each is built once a session, through envspec, unless a checkout's `out/` is that very one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envspec.audit.environment import Environment, of_manifest
from envspec.output.directory import existing
from envspec.output.manifest import read_manifest
from envspec.profile import read_profile
from envspec.report.errors import EnvspecError

REPOSITORY = Path(__file__).parent.parent.parent
FIRST = REPOSITORY / "profiles" / "rtx-pro-6000.toml"
SECOND = REPOSITORY / "tests" / "acceptance" / "profiles" / "sglang-0.5.23.toml"


def environment_of(out: Path) -> Environment:
    """The current environment of an output directory."""
    generation = existing(out).current()
    assert generation is not None
    return of_manifest(generation, read_manifest(generation.manifest))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for environments on the file system of the checkout; what is built there is removed at the end."""
    base = os.environ.get("ENVSPEC_TEST_DIR")
    directory = Path(base) if base else tmp_path_factory.mktemp("environments")
    directory.mkdir(parents=True, exist_ok=True)
    yield directory
    for entry in directory.iterdir():
        if entry.name.startswith("copy-") or not base:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@pytest.fixture(scope="session")
def first_stack(workshop: Path) -> Path:
    """The shipped profile, built."""
    kept = REPOSITORY / "out"
    return kept if is_built_from(kept, FIRST) else build(FIRST, workshop / "first")


@pytest.fixture(scope="session")
def second_stack(workshop: Path) -> Path:
    """A newer SGLang with torch 2.14 and its own pins, built. What `check` says of its metadata is not the point here."""
    profile = workshop / SECOND.name
    shutil.copyfile(SECOND, profile)
    return build(profile, workshop / "second")


@pytest.fixture
def copy_of(workshop: Path) -> Iterator[Callable[[Path], Path]]:
    """Copies an environment by hard links. Whatever a test changes in it, it has to replace, never to write into."""
    made: list[Path] = []

    def copy(out: Path) -> Path:
        target = workshop / f"copy-{len(made)}-{os.getpid()}"
        subprocess.run(["cp", "-al", str(out), str(target)], check=True)
        made.append(target)
        return target

    yield copy
    for target in made:
        shutil.rmtree(target)


def is_built_from(out: Path, profile: Path) -> bool:
    """Whether an output directory holds the environment of a profile as it is now."""
    try:
        generation = existing(out).current()
        return (
            generation is not None
            and read_manifest(generation.manifest).inputs.profile_digest == read_profile(profile).digest
        )
    except EnvspecError:
        return False


def build(profile: Path, out: Path, *options: str) -> Path:
    """Build a profile with the envspec of this checkout."""
    done = subprocess.run(
        [sys.executable, "-m", "envspec", "build", str(profile), "--out", str(out), *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out
