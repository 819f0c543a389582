"""What the world does to a build: full disks, networks that drop, wheels that change, clocks that jump, neighbours."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.faults.harness import Bench
from tests.support.command import ENVSPEC, environment
from tests.support.disk import small_disk
from tests.support.site import PACKAGES, WINNERS
from tests.support.wheels import make_wheel


@contextlib.contextmanager
def _on(bench: Bench, out: Path) -> Iterator[None]:
    """The bench with another output, built from the profile that is current."""
    before, turn = bench.out, bench.turn
    link = bench.site.root / "out"
    moved = bench.site.root / "out of the way"
    link.rename(moved)
    try:
        link.mkdir()
        subprocess.run(["mount", "--bind", str(out), str(link)], check=True)
        try:
            bench.site.made("out", f"{bench.old}.toml")
            yield
        finally:
            subprocess.run(["umount", "--lazy", str(link)], check=True)
            link.rmdir()
    finally:
        moved.rename(link)
        bench.out, bench.turn = before, turn


def full_disks(bench: Bench, rooms: tuple[int, ...] = (0, 4, 16, 40, 64, 96, 128, 160, 192, 224)) -> None:
    """A disk on which only so many kilobytes are left. Copies, since links to another file system cannot be made."""
    with small_disk(bench.site.root / "disk", "16m") as disk, _on(bench, disk):
        bench.site.gc("out")
        for room in rooms:
            fill = disk.parent / "out" / ".envspec" / "jit" / "fill"
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            with fill.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(free - room * 1024, 4096))
            done = bench.site.call(*bench.build_command()[len(ENVSPEC) :])
            if done.code not in (0, 1, 3):
                bench.problems.append(f"full disk, {room} kB: exit {done.code}")
            if done.code == 0:
                bench.turn += 1
            elif "error[disk-full]" not in done.err and "error[disk-too-small]" not in done.err:
                bench.problems.append(f"full disk, {room} kB: {done.err[-300:]}")
            fill.unlink()
            bench.check("a full disk")


def read_only_disk(bench: Bench, lines: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)) -> None:
    """A file system that is remounted read-only after so many stages. It can only be done while nobody writes."""
    with small_disk(bench.site.root / "disk", "64m") as disk, _on(bench, disk):
        for number in lines:
            process = subprocess.Popen(
                bench.build_command(), cwd=bench.site.root, env=environment(), stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert process.stderr is not None
            for _ in range(number):
                process.stderr.readline()
            struck = False
            while not struck and process.poll() is None:
                done = subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True)
                struck = done.returncode == 0
            with process.stderr:
                said = process.stderr.read()
            code = process.wait()
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            if "Traceback" in said or code not in (0, 1, 2, 3):
                bench.problems.append(f"read-only after {number} lines: exit {code}: {said[-300:]}")
            if code == 0:
                bench.turn += 1
            bench.check("a file system that turns read-only")


class _Index:
    """An index whose wheels break off after some bytes."""

    def __init__(self, wheels: Path, names: tuple[str, ...]) -> None:
        self.limit: int | None = None
        index = self
        simple = wheels.parent / "served" / "simple"
        for name in names:
            (simple / name).mkdir(parents=True, exist_ok=True)
            rows = []
            for wheel in wheels.glob(f"{name}-*.whl"):
                shutil.copy(wheel, simple / name)
                digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
                rows.append(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')
            (simple / name / "index.html").write_text("\n".join(rows))

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                with contextlib.suppress(OSError):
                    if index.limit is None or not self.path.endswith(".whl"):
                        super().do_GET()
                        return
                    data = Path(self.translate_path(self.path)).read_bytes()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data[: index.limit])
                    self.connection.close()

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(wheels.parent / "served"))
        )
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def dropping_network(bench: Bench, limits: tuple[int, ...] = (0, 1, 300, 700)) -> None:
    """The index goes away in the middle of a wheel. Then it comes back, and so does the build."""
    make_wheel(bench.site.root / "wheels", "far", "1.0", {"far.py": "\n".join(map(str, range(2000)))})
    index = _Index(bench.site.root / "wheels", ("far",))
    far = f'[[index]]\nname = "far"\nurl = "{index.url}"\nexplicit = true\n'
    path = bench.site.profile("far", PACKAGES + 'far = { version = "1.0", index = "far" }\n', WINNERS + far)
    path.write_text(path.read_text().replace("exclude-newer = 2026-05-25\n", ""))
    env: dict[str, str | None] = {
        "UV_CACHE_DIR": str(bench.site.root / "cold"), "NO_PROXY": "127.0.0.1", "UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "5",
    }  # fmt: skip
    args = ("build", "--python", sys.executable, "far.toml", "--out", "out", "--locked")
    try:
        done = bench.site.call("lock", "far.toml", "--python", sys.executable, env=env)
        checked = bench.site.call("check", "far.toml", env=env)
        if done.code or checked.code:
            bench.problems.append(f"dropping network: {done.err}{checked.err}{checked.out}")
        for limit in limits:
            shutil.rmtree(bench.site.root / "cold", ignore_errors=True)
            index.limit = limit
            done = bench.site.call(*args, env=env)
            if done.code not in (1, 3):
                bench.problems.append(f"the network drops after {limit} bytes: exit {done.code}")
            index.limit = None
            bench.check("a network that drops", next_build=False)
        done = bench.site.call(*args, "--out", "far out", env=env)
        if done.code != 0:
            bench.problems.append(f"the network is back: {done.err}")
    finally:
        index.server.shutdown()
        index.server.server_close()


def changing_wheel(bench: Bench) -> None:
    """A wheel has other bytes than when it was locked."""
    wheel = bench.site.root / "wheels" / "app-2.0-py3-none-any.whl"
    good = wheel.read_bytes()
    if bench.new == "even":
        wheel = bench.site.root / "wheels" / "app-1.0-py3-none-any.whl"
        good = wheel.read_bytes()
    for bad in (good[:-1], good[: len(good) // 2], good + b"\0", b"", bytes(len(good))):
        env: dict[str, str | None] = {"UV_CACHE_DIR": str(bench.site.root / "cold")}
        shutil.rmtree(bench.site.root / "cold", ignore_errors=True)
        wheel.write_bytes(bad)
        done = bench.site.call(*bench.build_command()[len(ENVSPEC) :], env=env)
        wheel.write_bytes(good)
        if done.code not in (1, 3):
            bench.problems.append(f"a changed wheel was accepted: {done.err}")
        bench.check("a wheel whose bytes changed", next_build=False)
    bench.check("a wheel whose bytes changed")


def jumping_clock(bench: Bench) -> None:
    """The wall clock jumps by a year, forth and back, under envspec and uv; and files come from the future and the past."""
    for jump in (31_536_000, -31_536_000, 86_400 * 3000):
        ended = bench.run(bench.build_command(), {"FAULT_CLOCK": str(jump)})
        if ended.code != 0:
            bench.problems.append(f"the clock jumps: {ended.err}")
        bench.turn += ended.code == 0
        bench.check("a clock that jumps")
    for when in (0, 4_102_444_800):
        for wheel in (bench.site.root / "wheels").glob("*.whl"):
            os.utime(wheel, (when, when))
        bench.check("wheels from another time")


def two_at_once(bench: Bench, rounds: int = 3) -> None:
    """Two builds of one output, of the same profile and of two; and one that is killed while the other waits."""
    for number in range(rounds):
        first = bench.new
        second = (first, bench.old, first)[number % 3]
        processes = [
            subprocess.Popen(
                bench.build_command(name), cwd=bench.site.root, env=environment(), stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
            )
            for name in (first, second)
        ]  # fmt: skip
        if number % 3 == 2:
            assert processes[0].stderr is not None
            for _ in range(4):
                processes[0].stderr.readline()
            processes[0].kill()
        ends = [(p.communicate(timeout=120)[1], p.returncode) for p in processes]
        for err, code in ends[1:] if number % 3 == 2 else ends:
            if code != 0:
                bench.problems.append(f"two at once: {err}")
        bench.turn += bench.site.digest("out") != bench.digests[bench.old]
        bench.check("two builds of one output")


def two_outputs_at_once(bench: Bench) -> None:
    """Builds of different outputs share uv's cache and the profile's lock, and nothing else."""
    commands = [
        bench.build_command(),
        *(bench.build_command(name, f"side {name}") for name in ("even", "odd")),
    ]
    processes = [
        subprocess.Popen(
            c, cwd=bench.site.root, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for c in commands
    ]
    for process in processes:
        _, err = process.communicate(timeout=120)
        if process.returncode != 0:
            bench.problems.append(f"builds of different outputs: {err.decode()}")
    bench.turn += 1
    for name in ("even", "odd"):
        if bench.site.digest(f"side {name}") != bench.digests[name]:
            bench.problems.append(f"built beside others, {name} has another digest")
    bench.check("builds of different outputs at once")
