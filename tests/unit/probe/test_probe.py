"""Running probes, with small scripts in place of compilers: order, memory, time, cleaning up, and what failures say."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from envspec.cli.main import cli
from envspec.cli.render import render_probes
from envspec.data.jit_variables import Kind, consumers
from envspec.diagnose.environment import EnvironmentFacts
from envspec.probe import rows as table
from envspec.probe.reporting import finding_of, probe_report, result_of
from envspec.probe.rows import SCRIPTS, ProbeRow, choose, probe_rows
from envspec.probe.running import Ended, Setting, run_all, slots_of
from envspec.probe.scratch import scratch_directory
from envspec.report.errors import UsageError
from envspec.report.text import render_finding

NAMES = [row.name for row in probe_rows()]
Write = Callable[..., ProbeRow]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Makes a probe of a few lines of Python."""
    monkeypatch.setattr(table, "SCRIPTS", tmp_path / "scripts")
    (tmp_path / "scripts").mkdir()

    def made(name: str, text: str, **fields: int) -> ProbeRow:
        (tmp_path / "scripts" / f"{name}.py").write_text(text)
        settings = {"jobs": 1, "memory": 1, "seconds": 1, "timeout": 30, **fields}
        return ProbeRow(name=name, means=f"the {name}", packages=(), script=f"{name}.py", **settings)  # type: ignore[arg-type]

    return made


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """Two compilers of 4 GiB, in this Python."""
    return Setting(
        python=Path(sys.executable),
        environment={"PATH": os.environ["PATH"], "TRITON_CACHE_DIR": "/real/cache"},
        work=tmp_path / "work",
        slots=2,
        memory_per_slot=4 << 30,
    )


def _one(row: ProbeRow, setting: Setting) -> Ended:
    (ended,) = run_all([row], setting)
    return ended


def test_the_table_and_the_scripts_belong_together() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {row.script for row in probe_rows()} == {
        p.name for p in SCRIPTS.glob("*.py") if not p.name.startswith("_")
    }
    for row in probe_rows():
        assert row.timeout >= 3 * row.seconds and row.jobs >= 1 and row.memory >= 1
        compile(row.path.read_text(), str(row.path), "exec")


def test_only_what_is_installed_is_chosen() -> None:
    assert [row.name for row in choose((), ())] == [
        "cuda-plain", "cuda-half", "cuda-cub", "cuda-driver", "cuda-nvrtc",
    ]  # fmt: skip
    assert "triton" in [row.name for row in choose((), {"torch", "triton"})]
    assert [row.name for row in choose(("triton", "cuda-cub"), {"torch", "triton"})] == ["cuda-cub", "triton"]


def test_unknown_and_uninstalled_names_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        choose(("cuda-plane",), ())
    assert (caught.value.code, caught.value.fix) == ("probe-unknown", "did you mean cuda-plain?")
    with pytest.raises(UsageError) as caught:
        choose(("tilelang",), ())
    assert caught.value.what == "tilelang needs tilelang, which this environment does not have"


def test_caches_are_thrown_away_ones(write: Write, setting: Setting) -> None:
    names = [row.variable for row in consumers() if row.kind is Kind.CACHE_DIR]
    row = write(
        "caches",
        f"import os\nfor n in {names!r} + ['HOME', 'XDG_CACHE_HOME']: print('probe:', os.environ[n])",
    )
    ended = _one(row, setting)
    places = result_of(ended).did
    assert len(places) == len(names) + 2
    assert all(place.startswith(str(setting.work / "caches")) for place in places)


def test_jobs_are_what_the_probe_may_start(write: Write, setting: Setting) -> None:
    ended = _one(write("jobs", "import os; print('probe:', os.environ['MAX_JOBS'])", jobs=8), setting)
    assert result_of(ended).did == ("2",)


def test_memory_counts_as_compilers(write: Write, setting: Setting) -> None:
    assert slots_of(write("a", "", jobs=1, memory=1), setting) == 1
    assert slots_of(write("b", "", jobs=1, memory=5), setting) == 2
    assert slots_of(write("c", "", jobs=1, memory=99), setting) == 2


def test_they_run_beside_each_other_within_the_slots(write: Write, setting: Setting) -> None:
    script = "import time; time.sleep(0.6)"
    rows = [write("small", script), write("other", script), write("large", script, jobs=2, seconds=9)]
    together: list[set[str]] = []
    ended = list(run_all(rows, setting, lambda names: together.append(set(names))))
    assert ended[0].row.name == "large"  # the longest first
    assert {"small", "other"} in together
    assert all(names == {"large"} for names in together if "large" in names)


def test_a_probe_that_does_not_end_is_ended_with_its_children(write: Write, setting: Setting) -> None:
    row = write(
        "stuck",
        "import subprocess, time\nc = subprocess.Popen(['sleep', '60'])\nprint(c.pid, flush=True)\ntime.sleep(60)",
        timeout=1,
    )
    ended = _one(row, setting)
    assert ended.timed_out and ended.seconds < 10
    child = int(ended.log.read_text().split()[0])
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child still runs")
    finding = finding_of(ended, EnvironmentFacts())
    assert finding is not None
    assert render_finding(finding) == (
        "error[probe-timeout]: stuck (the stuck) had not ended after 1 s\n"
        f"  {child}\n"
        "  fix: run it alone (envspec probe stuck); a stuck lock or a machine under load are the usual reasons\n"
        "  more: envspec explain probe-timeout"
    )


def test_leaving_early_ends_what_runs(write: Write, setting: Setting) -> None:
    runs = run_all([write("first", ""), write("long", "import time; time.sleep(60)")], setting)
    next(runs)
    started = time.monotonic()
    runs.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 10


def test_a_failure_is_told_by_its_cause(write: Write, setting: Setting) -> None:
    row = write(
        "norm",
        "import sys\nprint('[1/2] nvcc norm.cu')\n"
        "print('/x/cudaUtils.h:21:10: fatal error: cublasLt.h: No such file or directory')\n"
        "print('compilation terminated.\\nninja: build stopped: subcommand failed.')\n"
        "sys.exit('RuntimeError: Ninja build failed')",
    )
    finding = finding_of(_one(row, setting), EnvironmentFacts())
    assert finding is not None
    assert (finding.code, finding.subject) == ("probe-failed", "norm")
    assert finding.message == "norm (the norm) fails in this environment"
    assert finding.evidence[0] == (
        "line 2 of its output: /x/cudaUtils.h:21:10: fatal error: cublasLt.h: No such file or directory"
    )
    assert finding.fix


def test_a_failure_without_words_says_how_to_see_more(write: Write, setting: Setting) -> None:
    finding = finding_of(_one(write("mute", "import sys; sys.exit(3)"), setting), EnvironmentFacts())
    assert finding is not None
    assert render_finding(finding) == (
        "error[probe-failed]: mute (the mute) fails in this environment\n"
        "  it printed nothing\n"
        "  fix: look at all of its output: envspec probe mute --logs DIR\n"
        "  more: envspec explain probe-failed"
    )


def test_a_signal_is_named(write: Write, setting: Setting) -> None:
    row = write("killed", "import os; print('compiling', flush=True); os.kill(os.getpid(), 9)")
    finding = finding_of(_one(row, setting), EnvironmentFacts())
    assert finding is not None
    assert finding.message == "killed (the killed) fails in this environment: ended by SIGKILL"


def test_output_cannot_steer_the_terminal(write: Write, setting: Setting) -> None:
    row = write(
        "rude", "import sys; print('probe: \\x1b[2Jdone'); print('\\x1b]0;x\\x07 words'); sys.exit(1)"
    )
    ended = _one(row, setting)
    finding = finding_of(ended, EnvironmentFacts())
    assert finding is not None
    text = render_probes(probe_report("out", [result_of(ended)], [finding]))
    assert "\x1b" not in text and "\x07" not in text


def test_the_whole_report(write: Write, setting: Setting) -> None:
    ended = [
        msgspec.structs.replace(_one(write("works", "print('probe: compiled')"), setting), seconds=1.26),
        msgspec.structs.replace(_one(write("fails", "raise SystemExit(1)"), setting), seconds=11.0),
    ]
    findings = [f for e in ended if (f := finding_of(e, EnvironmentFacts())) is not None]
    assert render_probes(probe_report("out", map(result_of, ended), findings)) == (
        "works      works                 1.3 s  compiled\n"
        "failed     fails                11.0 s\n"
        "error[probe-failed]: fails (the fails) fails in this environment\n"
        "  it printed nothing\n"
        "  fix: look at all of its output: envspec probe fails --logs DIR\n"
        "  more: envspec explain probe-failed\n"
        "probe: 1 of 2 work\n"
    )


def test_the_directory_is_removed_and_so_is_what_the_dead_left(tmp_path: Path) -> None:
    (tmp_path / "probe-999999999-abc").mkdir()
    (tmp_path / f"probe-{os.getpid()}-other").mkdir()
    (tmp_path / "probe-x-abc").mkdir()
    with scratch_directory(tmp_path) as work:
        assert work.parent == tmp_path
        assert not (tmp_path / "probe-999999999-abc").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"probe-{os.getpid()}-other", "probe-x-abc"]


def test_an_output_that_cannot_be_written_to_is_probed_from_elsewhere(tmp_path: Path) -> None:
    with scratch_directory(tmp_path / "nowhere") as work:
        assert work.is_dir()
    assert not work.exists()


def test_the_list() -> None:
    result = CliRunner().invoke(cli, ["probe", "--list"])
    assert [line.split()[0] for line in result.output.splitlines()] == NAMES
