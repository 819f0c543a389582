"""The lock's text: exact bytes, read back as written, anything else refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envspec.lock import Lock, LockedFile, LockedPackage, OverrideRecord, parse_lock, read_lock, render_lock
from envspec.lock.model import compare
from envspec.lock.text import LockSyntaxError
from envspec.report.errors import UsageError
from envspec.report.text import render_error
from tests.support.texts import without_more

A, B = "a" * 64, "b" * 64

LOCK = Lock(
    profile_name="p.toml",
    profile_digest="sha256:1",
    python=">=3.10",
    machines=("x86_64", "aarch64"),
    exclude_newer="2026-05-25T00:00:00Z",
    overrides=(
        OverrideRecord(
            name="nvidia-cuda-runtime",
            version="13.2.75",
            reason="part of CUDA toolkit 13.2.1",
            dependency_paths=("nvidia-cuda-runtime==13.0.96.* <- torch 2.11.0 <- your profile",),
        ),
    ),
    packages=(
        LockedPackage(
            name="torch",
            version="2.11.0",
            marker="python_full_version < '3.11'",
            files=(
                LockedFile(
                    "torch-2.11.0-cp310-cp310-manylinux_2_28_aarch64.whl", A, 419, "2026-03-23T18:11:43Z"
                ),
                LockedFile("torch-2.11.0-cp310-cp310-manylinux_2_28_x86_64.whl", B, 530),
            ),
            via=("profile", "sglang"),
        ),
    ),
)

TEXT = f"""\
# envspec-lock: 1
#   Made by envspec; changes by hand are lost. Make it again with: envspec lock PROFILE
#   pip and uv install it too: pip install --no-deps --require-hashes --only-binary :all: -r FILE
# profile: p.toml
# profile-digest: sha256:1
# python: >=3.10
# machines: x86_64 aarch64
# exclude-newer: 2026-05-25T00:00:00Z
# override: nvidia-cuda-runtime==13.2.75
#   why: part of CUDA toolkit 13.2.1
#   asked otherwise: nvidia-cuda-runtime==13.0.96.* <- torch 2.11.0 <- your profile
torch==2.11.0 ; python_full_version < '3.11' \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
    # torch-2.11.0-cp310-cp310-manylinux_2_28_aarch64.whl 419 2026-03-23T18:11:43Z
    # torch-2.11.0-cp310-cp310-manylinux_2_28_x86_64.whl 530
    # via profile, sglang
"""


def test_exact_text() -> None:
    assert render_lock(LOCK) == TEXT


def test_read_back_as_written() -> None:
    assert parse_lock(TEXT) == LOCK


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("envspec-lock: 1", "envspec-lock: 2", 1, "it must begin with '# envspec-lock: 1'"),
        (f"sha256:{A} \\", "sha256:12 \\", 13, "expected --hash=sha256: with 64 hexadecimal digits"),
        ("torch==2.11.0", "torch>=2.11.0", 12, "expected a pinned requirement followed by its hashes"),
        ("    # torch-2.11.0-cp310-cp310-manylinux_2_28_x86_64.whl 530\n", "", 17, "2 hashes but 1 files"),
        ("# machines: x86_64 aarch64\n", "", 17, "'# machines:' is missing"),
        ("    # via profile", "    # by profile", 17, "expected a file with its size, or '# via'"),
        (
            "python_full_version < '3.11'",
            "python_full_version <",
            12,
            "Expected a marker variable or quoted string",
        ),
    ],
)
def test_damage_is_named_by_line(old: str, new: str, line: int, problem: str) -> None:
    assert old in TEXT
    with pytest.raises(LockSyntaxError) as caught:
        parse_lock(TEXT.replace(old, new))
    assert (caught.value.line, str(caught.value)) == (line, problem)


def test_a_damaged_lock_file_tells_how_to_make_it_again(tmp_path: Path) -> None:
    path = tmp_path / "p.lock"
    path.write_text("numpy==1\n")
    with pytest.raises(UsageError) as caught:
        read_lock(path)
    assert without_more(render_error(caught.value)).replace(f"{tmp_path}/", "") == (
        "error[lock-damaged]: p.lock is not a lock that envspec wrote\n"
        "  p.lock, line 1\n"
        "  it must begin with '# envspec-lock: 1'\n"
        "  fix: restore it from version control, or delete it and run: envspec lock p.toml\n"
    )


def test_a_missing_lock_is_none(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "p.lock") is None


@given(st.text(max_size=300) | st.lists(st.sampled_from(TEXT.splitlines()), max_size=20).map("\n".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_lock(text)
    except LockSyntaxError as error:
        assert error.line >= 1


def test_difference_by_package() -> None:
    def lock(**versions: str) -> Lock:
        packages = tuple(LockedPackage(name=n, version=v, marker="", files=()) for n, v in versions.items())
        return Lock(
            profile_name="",
            profile_digest="",
            python="",
            machines=(),
            exclude_newer="",
            overrides=(),
            packages=packages,
        )

    changes = compare(lock(a="1", b="1", c="1"), lock(a="1", b="2", d="1"))
    assert [str(c) for c in changes] == ["~ b 1 -> 2", "- c 1", "+ d 1"]
