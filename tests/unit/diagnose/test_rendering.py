"""The two faces of an answer, whole."""

from __future__ import annotations

import json

from envspec.diagnose import Cause, Diagnosis, Misleading, render_text, to_json
from tests.support import logs

LOG = """\
RuntimeError: Ninja build failed. Ninja output:
FAILED: [code=1] a.so
/usr/bin/ld: cannot find -lcudart: No such file or directory
collect2: error: ld returned 1 exit status
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
"""


def test_text_of_a_cause() -> None:
    assert (
        render_text(logs.of(LOG))
        == """\
cause[link-missing-cuda-library]
  line 3: /usr/bin/ld: cannot find -lcudart: No such file or directory
  meaning: The linker finds no libcudart.so: the wheels have lib/ and only versioned names (libcudart.so.13), the JITs look in \
$CUDA_HOME/lib64 for the plain name.
  fix: Create lib64 -> lib and links without a version (libcudart.so -> libcudart.so.13) in CUDA_HOME; envspec does this: source \
out/sglang_env.sh.
  confidence: high

misleading:
  line 1: RuntimeError: Ninja build failed. Ninja output:
    Python's wrapper around a failed build; the compiler's or linker's own words are in ninja's output.
  line 2: FAILED: [code=1] a.so
    ninja's name for the step that failed; the tool's message follows.
  line 4: collect2: error: ld returned 1 exit status
    The compiler driver repeats that the linker failed; the linker's line is above.
  line 5: Possible solutions:
    The first line of SGLang's fixed list of advice.
  line 6: 1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
    SGLang prints this advice whatever failed during graph capture. It helps only when the log says out of memory; disabling CUDA \
graphs costs 30 to 50 % of throughput.
"""
    )


def test_text_when_nothing_failed() -> None:
    assert render_text(logs.of("all is well\n")) == "no failure in this log\n"


def test_json_has_the_published_form() -> None:
    answer = Diagnosis(
        verdict="cause-found",
        cause=Cause(family="f", line=3, text="t", meaning="m", fix="x", confidence="high"),
        misleading=(Misleading(line=4, text="u", why="w"),),
    )
    assert json.loads(to_json(answer)) == {
        "version": 1,
        "verdict": "cause-found",
        "cause": {"family": "f", "line": 3, "text": "t", "meaning": "m", "fix": "x", "confidence": "high"},
        "misleading": [{"line": 4, "text": "u", "why": "w"}],
        "others": [],
    }


def test_a_lost_cause_names_the_command_that_shows_it() -> None:
    answer = logs.of(
        "subprocess.CalledProcessError: Command '['ninja', '-v', '-C', '/c/flashinfer/0.6', '-f', '/c/build.ninja']' "
        "returned non-zero exit status 1.\nRuntimeError: Ninja build failed. Ninja output: [repeated 2x across cluster]\n"
    )
    assert answer.verdict == "cause-not-in-log"
    assert answer.cause is not None
    assert "Run: ninja -v -C /c/flashinfer/0.6 -f /c/build.ninja." in answer.cause.fix
    assert answer.cause.confidence == "low"


def test_a_real_lack_of_memory_is_called_one_and_the_advice_is_not_misleading() -> None:
    answer = logs.of(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    )
    assert answer.cause is not None
    assert answer.cause.family == "gpu-out-of-memory"
    assert not [row for row in answer.misleading if "mem-fraction" in row.text]


def test_independent_problems_are_listed() -> None:
    answer = logs.of(
        "/x/cuda_fp16.h:4100:10: fatal error: nv/target: No such file or directory\n"
        "ninja: build stopped: subcommand failed.\n"
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use\n"
    )
    assert answer.cause is not None
    assert answer.cause.family == "cccl-headers-missing"
    assert [other.family for other in answer.others] == ["port-in-use"]


def test_confidence_is_lower_where_only_the_structure_is_known() -> None:
    assert logs.of("frob.core.GizmoError: upside down\n").cause == Cause(
        family="python-exception",
        line=1,
        text="frob.core.GizmoError: upside down",
        meaning="This is the first exception of the chain; the ones after it were raised while it was being handled or "
        "because of it.",
        fix="Read the frames above the line: the last file in them that is not a library's is where to look.",
        confidence="medium",
    )
