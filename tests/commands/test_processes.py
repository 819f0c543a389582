"""A process belongs to the generation it was started from, however often the output switches; gc leaves it its files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import environment
from tests.support.shells import shells
from tests.support.site import PACKAGES, WINNERS, TrustSite

LATE = """
import json, os, sys, time
def tell():
    import app.late, extra_module, importlib.metadata, site, sysconfig, subprocess, multiprocessing
    import importlib.util
    return {
        "prefix": sys.prefix, "exec_prefix": sys.exec_prefix, "executable": sys.executable, "path": sys.path,
        "late": app.late.__file__, "extra": extra_module.where,
        "site-packages": site.getsitepackages(),
        "paths": sysconfig.get_paths(),
        "metadata": str(importlib.metadata.distribution("app").locate_file("app")),
        "version": importlib.metadata.version("app"), "value": app.late.late,
        "child": subprocess.run([sys.executable, "-c", "import app.late; print(app.late.__file__)"],
                                capture_output=True, text=True).stdout.strip(),
        "isolated child": subprocess.run([sys.executable, "-I", "-c", "import app.late; print(app.late.__file__)"],
                                capture_output=True, text=True).stdout.strip(),
    }
def child(queue):
    import app.late, lib
    queue.put([app.late.__file__, lib.__file__, sys.executable, sys.prefix])
if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    told = tell()
    import multiprocessing
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        told[method] = queue.get()
        process.join()
    print(json.dumps(told), flush=True)
"""


class Running:
    """A process that says `ready`, and what it was started with."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str | None] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go_on(self) -> str:
        out, _ = self.process.communicate("go\n", timeout=60)
        assert self.process.returncode == 0
        return out


@pytest.fixture
def started() -> Iterator[list[Running]]:
    """Processes that are ended with the test."""
    found: list[Running] = []
    yield found
    for one in found:
        if one.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.process.pid, signal.SIGKILL)
            one.process.communicate()


def next_generation(site: TrustSite, out: Path) -> None:
    """Build another generation into the same output: app is 2.0 in it."""
    site.profile("next", PACKAGES.replace('app = "1.0"', 'app = "2.0"'), WINNERS)
    site.made(out.name, "next.toml")


def generation(out: Path, number: int) -> str:
    return str(out / ".envspec" / "generations" / str(number))


@pytest.mark.parametrize(
    "options", [[], ["-I"], ["-E"], ["-s"], ["-B", "-u"], ["-X", "frozen_modules=off"]], ids=str
)
def test_late_imports_and_children_stay(
    site: TrustSite, out: Path, tmp_path: Path, started: list[Running], options: list[str]
) -> None:
    (tmp_path / "server.py").write_text(LATE)
    python = str(out / "venv" / "bin" / "python")
    one = Running([python, *options, str(tmp_path / "server.py")], tmp_path)
    started.append(one)
    next_generation(site, out)
    first = generation(out, 1)
    assert os.path.realpath(out / "venv") == generation(out, 2) + "/venv"
    told = json.loads(one.go_on())
    assert told["version"] == told["value"] == "1.0"
    inside = [
        told["prefix"], told["exec_prefix"], told["executable"], told["late"], told["extra"], told["metadata"],
        told["child"], told["isolated child"], *told["site-packages"],
        told["paths"]["purelib"], told["paths"]["platlib"], told["paths"]["scripts"], told["paths"]["data"],
        *told["spawn"], *told["forkserver"], *told["fork"],
    ]  # fmt: skip
    assert [path for path in inside if not path.startswith(first + "/")] == []
    assert [path for path in told["path"] if str(out / "venv") in path] == []


def test_python_without_site_sees_no_packages_at_all(out: Path) -> None:
    code = "import sys; print([p for p in sys.path if 'site-packages' in p])"
    done = subprocess.run(
        [str(out / "venv" / "bin" / "python"), "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_start_up_file_and_an_outer_site_are_left_alone(site: TrustSite, out: Path, tmp_path: Path) -> None:
    """Another Python that only adds our site-packages to its path keeps its own prefix."""
    (tmp_path / "link").symlink_to(Path(sys.prefix))
    packages = next((out / "venv").resolve().glob("lib/python3*/site-packages"))
    code = f"import site, sys; site.addsitedir({str(packages)!r}); import app; print(sys.prefix)"
    done = subprocess.run(
        [str(tmp_path / "link" / "bin" / "python"), "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(tmp_path / "link")
    (tmp_path / "start.py").write_text("import app; started = app.__file__\n")
    done = subprocess.run(
        [str(out / "venv" / "bin" / "python"), "-i"],
        input="print(started)\n",
        env=environment({"PYTHONSTARTUP": str(tmp_path / "start.py")}),
        capture_output=True,
        text=True,
    )
    assert generation(out, 1) in done.stdout


def test_console_scripts_stay(site: TrustSite, out: Path, tmp_path: Path) -> None:
    """The launcher resolves its own place, so what it imports late comes from there."""
    done = subprocess.run([str(out / "venv" / "bin" / "tool")], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(generation(out, 1) + "/")
    done = subprocess.run([str(out / "venv" / "bin" / "hello")], capture_output=True, text=True, check=True)
    assert done.stdout == "hello\n"


def test_a_venv_made_from_the_venv_has_the_hosts_python(out: Path, tmp_path: Path) -> None:
    python = str(out / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "venv", "--without-pip", str(tmp_path / "inner")], check=True)
    code = "import sys; print(sys.prefix, sys.base_prefix)"
    done = subprocess.run(
        [str(tmp_path / "inner" / "bin" / "python"), "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "inner"), sys.base_prefix]


@pytest.mark.parametrize("shell", shells("bash", "dash", "zsh"))
def test_a_shell_keeps_its_toolchain_and_its_generation(
    site: TrustSite, out: Path, started: list[Running], shell: str
) -> None:
    script = (
        '. "$1"; echo ready; read go; echo "$CUDA_HOME"; python -c "import app.late; print(app.late.__file__)"; '
        '"$CUDA_HOME/bin/nvcc" late.o && echo compiled'
    )
    one = Running([shell, "-c", script, shell, str(out / "sglang_env.sh")], site.root)
    started.append(one)
    next_generation(site, out)
    told = site.gc(out)
    assert "kept generation 1, which is in use:\n" in told
    assert f"(process {one.process.pid}, has sourced its script)" in told
    home, late, compiled = one.go_on().splitlines()
    toolchain = (out / "cuda").resolve()
    assert home == str(toolchain) and late.startswith(generation(out, 1) + "/") and compiled == "compiled"
    assert site.gc(out) == "removed generations: 1\n"


def test_a_shell_that_left_is_no_user(site: TrustSite, out: Path, started: list[Running]) -> None:
    script = '. "$1"; envspec_deactivate; echo ready; read go'
    started.append(Running(["bash", "-c", script, "bash", str(out / "sglang_env.sh")], site.root))
    next_generation(site, out)
    assert site.gc(out) == "removed generations: 1\n"


def test_a_subshell_speaks_for_itself(site: TrustSite, out: Path, started: list[Running]) -> None:
    """It leaves; the shell around it does not."""
    script = '. "$1"; (. "$1"; envspec_deactivate); echo ready; read go'
    started.append(Running(["bash", "-c", script, "bash", str(out / "sglang_env.sh")], site.root))
    next_generation(site, out)
    assert "kept generation 1" in site.gc(out)


def test_a_note_of_a_process_that_had_the_number_before_counts_for_nothing(
    site: TrustSite, out: Path
) -> None:
    notes = Path(generation(out, 1)) / "shells"
    (notes / str(os.getpid())).write_text(f"{os.getpid()} (bash) S " + " ".join(["1"] * 40))
    (notes / "1").write_text("nonsense")
    (notes / "x").write_text("")
    next_generation(site, out)
    assert site.gc(out) == "removed generations: 1\n"


SLEEP = "import sys, os, time; print('ready', flush=True); sys.stdin.readline(); import app.late; print(app.late.late)"

USERS = {
    "python through the link": (["{out}/venv/bin/python", "-c", SLEEP], "has files of it loaded"),
    "python by its real path": (["{one}/venv/bin/python", "-c", SLEEP], "has files of it loaded"),
    "python that hides its traces": (
        [
            "{out}/venv/bin/python",
            "-c",
            "import os; os.chdir('/'); os.closerange(3, 256); " + SLEEP,
        ],
        "has files of it loaded",
    ),
    "a child with only its directory there": (
        ["sh", "-c", "cd '{one}/venv' && exec env -i sh -c 'echo ready; read go; echo 1.0'"],
        "works in it",
    ),
    "a child with only a file open": (
        ["sh", "-c", "exec 7<'{one}/envspec.json'; exec env -i sh -c 'echo ready; read go; echo 1.0'"],
        "has files of it open",
    ),
    "a child with only a variable": (
        ["env", "-i", "WHERE={one}/venv", "sh", "-c", "echo ready; read go; echo 1.0"],
        "has it in its environment",
    ),
}


@pytest.mark.parametrize("user", USERS)
def test_gc_takes_nothing_from_under_a_process(
    site: TrustSite, out: Path, tmp_path: Path, started: list[Running], user: str
) -> None:
    command, how = USERS[user]
    command = [word.replace("{out}", str(out)).replace("{one}", generation(out, 1)) for word in command]
    one = Running(command, tmp_path)
    started.append(one)
    next_generation(site, out)
    told = site.gc(out)
    assert told.startswith("removed generations: nothing\nkept generation 1, which is in use:\n  ")
    assert f"(process {one.process.pid}, {how})" in told
    assert one.go_on() == "1.0\n"
    assert site.gc(out) == "removed generations: 1\n"


def test_a_mapped_file_is_a_use(site: TrustSite, out: Path, started: list[Running], tmp_path: Path) -> None:
    code = (
        "import mmap, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); f.close();"
        "sys.argv.clear(); print('ready', flush=True); sys.stdin.readline()"
    )
    link = tmp_path / "link"
    link.symlink_to(Path(generation(out, 1)) / "envspec.json")
    started.append(Running([sys.executable, "-c", code, str(link)], tmp_path))
    next_generation(site, out)
    assert "has files of it loaded" in site.gc(out)


def test_a_toolchain_in_use_outlives_its_generation(
    site: TrustSite, out: Path, started: list[Running]
) -> None:
    toolchain = (out / "cuda").resolve()
    started.append(
        Running(
            ["env", f"CUDA_HOME={toolchain}", "sh", "-c", 'echo ready; read go; ls "$CUDA_HOME"'], site.root
        )
    )
    # Another toolchain, so that only the process needs the first one: a new name for the same files.
    next_generation(site, out)
    other = toolchain.with_name("0" * 16)
    shutil.copytree(toolchain, other, symlinks=True)
    link = Path(generation(out, 2)) / "cuda"
    link.unlink()
    link.symlink_to("../../toolchains/" + "0" * 16)
    assert site.gc(out) == "removed generations: 1\n"
    assert toolchain.is_dir()
    assert "nvvm" in started[0].go_on()
    (out / ".envspec" / "jit" / toolchain.name / "x").mkdir(parents=True)
    assert site.gc(out) == f"removed generations: nothing\nremoved toolchains: {toolchain.name}\n"
    assert not toolchain.exists() and not (out / ".envspec" / "jit" / toolchain.name).exists()


def test_the_list_names_the_users(site: TrustSite, out: Path, started: list[Running], tmp_path: Path) -> None:
    started.append(Running([str(out / "venv" / "bin" / "python"), "-c", SLEEP], tmp_path))
    pid = started[0].process.pid
    found = json.loads(site.call("generations", "--json", "--out", out).out)
    (row,) = found["generations"]
    assert found["version"] == 1 and row["current"] and row["number"] == 1
    assert row["users"] == [f"python (process {pid}, has files of it loaded)"]
    text = site.call("generations", "--out", out).out
    assert text.splitlines()[1] == f"       used by python (process {pid}, has files of it loaded)"


def test_nobody_can_tell_how_long_a_python_start_takes(out: Path) -> None:
    """The two lines cost a start little."""
    python = str(out / "venv" / "bin" / "python")

    def best(*options: str) -> float:
        times = []
        for _ in range(7):
            began = time.perf_counter()
            subprocess.run([python, *options, "-c", ""], check=True)
            times.append(time.perf_counter() - began)
        return min(times)

    assert best() - best("-S") < 0.05
