"""Logs of processes that are well: no failure may be found in any of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import logs

HEALTHY = sorted((Path(__file__).parent / "healthy").glob("*.log"))


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.name)
def test_no_failure(path: Path) -> None:
    answer = logs.of(path.read_bytes())
    assert answer.verdict == "no-failure", answer.cause
    assert answer.cause is None


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.name)
def test_no_failure_inside_a_long_log(path: Path) -> None:
    log = logs.start_up(3000).encode() + path.read_bytes() + logs.serving(3000).encode()
    assert logs.of(log).verdict == "no-failure"


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.name)
def test_windows_line_ends_change_nothing(path: Path) -> None:
    assert logs.of(path.read_bytes().replace(b"\n", b"\r\n")).verdict == "no-failure"


def test_a_real_build_with_many_warnings(tmp_path: Path) -> None:
    source = tmp_path / "errors.cpp"
    functions = "\n".join(f"int error_{i}(int failed) {{ int fatal; return 1; }}" for i in range(200))
    source.write_text(
        f'#warning "this is not an error: go on"\n{functions}\nint main() {{}}\n', encoding="utf-8"
    )
    done = subprocess.run(
        ["g++", "-Wall", "-Wextra", str(source), "-o", str(tmp_path / "a")],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert done.stderr.count(b"warning:") > 200
    assert logs.of(done.stderr).verdict == "no-failure"
