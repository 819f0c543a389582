"""The verb as a process: exit codes, standard input, and its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOG = "ImportError: libnvrtc.so.13: cannot open shared object file: No such file or directory\n"


def _run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envspec", "diagnose", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_as_json(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(LOG, encoding="utf-8")
    done = _run(str(path), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["cause"]["family"] == "missing-shared-lib"


def test_standard_input_as_text() -> None:
    done = _run("-", text=LOG)
    assert done.returncode == 0
    assert done.stdout.startswith("cause[missing-shared-lib]\n  line 1: ImportError: libnvrtc.so.13")


def test_a_log_without_failure_is_success() -> None:
    assert _run("-", text="fine\n").returncode == 0


def test_bad_calls(tmp_path: Path) -> None:
    assert _run().returncode == 2
    assert _run(str(tmp_path / "nothere.log")).returncode == 2
    assert _run(str(tmp_path)).returncode == 2
