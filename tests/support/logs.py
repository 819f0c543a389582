"""Logs for the tests: what a server writes before and after a failure, and reading a diagnosis of text."""

from __future__ import annotations

import functools
import io

from envspec.diagnose import Diagnosis, diagnose

MISLEADING_TAIL = """\
[2026-05-16 10:12:09 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2937, in run_scheduler_process
    scheduler = Scheduler(
                ^^^^^^^^^^
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py", line 791, in initialize
    self.init_device_graphs()
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/cuda_graph_runner.py", line 738, in __init__
    raise Exception(
Exception: Capture cuda graph failed: ninja exited with status 1
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
2. set --cuda-graph-max-bs to a smaller value (e.g., 16)
3. disable torch compile by not using --enable-torch-compile
4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)
Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose

[2026-05-16 10:12:10] Received sigquit from a child process. It usually means the child failed.
Killed
"""


def of(text: str | bytes) -> Diagnosis:
    """The diagnosis of a log."""
    return diagnose(io.BytesIO(text.encode() if isinstance(text, str) else text))


@functools.cache
def start_up(lines: int) -> str:
    """The beginning of a server that starts well: arguments, warnings that mean nothing, weights, graphs."""
    head = [
        "[2026-05-16 10:11:41] server_args=ServerArgs(model_path='/models/M', mem_fraction_static=0.836, log_level='error', "
        "enable_return_error=False, disable_cuda_graph=False, crash_dump_folder=None)",
        "/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated.",
        "[2026-05-16 10:11:43] Ignore import error when loading sglang.srt.models.midashenglm: No module named 'torchaudio'",
        "[W516 10:11:44.1 socket.cpp:755] [c10d] The client socket has failed to connect to [localhost]:29500 "
        "(errno: 97 - Address family not supported by protocol).",
        "[2026-05-16 10:11:45 TP0] Init torch distributed begin.",
        "[2026-05-16 10:11:46 TP0] Load weight begin. avail mem=93.10 GB",
    ]
    shards = max(1, lines - len(head) - 2)
    head.extend(
        f"Loading safetensors checkpoint shards: {100 * i // shards:3d}% Completed | {i}/{shards} [00:{i % 60:02d}<00:30]"
        for i in range(shards)
    )
    head.append(
        "[2026-05-16 10:12:01 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=78.10 GB"
    )
    head.append(
        "[2026-05-16 10:12:02 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=7.90 GB"
    )
    return "\n".join(head) + "\n"


@functools.cache
def serving(lines: int) -> str:
    """A server at work."""
    return "".join(
        f"[2026-05-16 11:{i // 60 % 60:02d}:{i % 60:02d} TP0] Decode batch. #running-req: {i % 97}, #token: {i * 7 % 99999}, "
        f"token usage: 0.{i % 99:02d}, gen throughput (token/s): {i % 3000}.00, #queue-req: 0\n"
        if i % 3
        else f'INFO:     10.0.0.{i % 250}:{1024 + i % 60000} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
        for i in range(lines)
    )


def buried(failure: str) -> str:
    """A failure in the middle of a long start, under the tail that blames memory."""
    return start_up(400) + failure.rstrip("\n") + "\n" + MISLEADING_TAIL
