"""Reading wheels over HTTP from a server on the loopback interface, good and bad."""

from __future__ import annotations

import io
import random
import re
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from envspec.elf import ElfError, ElfIncomplete, read
from envspec.report.errors import Exit, ExternalError
from envspec.wheels.remote import RemoteWheel

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]
SENT: list[int] = []
"""The sizes of all answers of a test's servers."""


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    if "Content_Length" not in headers:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    SENT.append(len(body))  # first: whoever has read the answer may look at once
    handler.wfile.write(body)


def with_ranges(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    """As a good server answers."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", handler.headers["Range"])
    assert match
    first, last = match.groups()
    start = int(first) if first else max(len(data) - int(last), 0)
    end = min(int(last), len(data) - 1) if first and last else len(data) - 1
    send(handler, 206, data[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(data)}")


def without_ranges(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    send(handler, 200, data)


@pytest.fixture
def serve() -> Iterator[Callable[[bytes, Answer], str]]:
    """A function: content and manner of answering -> URL."""
    servers: list[ThreadingHTTPServer] = []
    SENT.clear()

    def start(data: bytes, answer: Answer = with_ranges) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self, data)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://user:secret@127.0.0.1:{server.server_port}/files/demo-1.0-py3-none-any.whl"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with many exports and 3 MB that do not compress behind them."""
    folder = tmp_path_factory.mktemp("remote")
    lines = [f"int exported_{n}(int x) {{ return wanted(x) + {n}; }}" for n in range(300)]
    (folder / "ballast.bin").write_bytes(random.Random(1).randbytes(3 << 20))
    ballast = '__asm__(".section .rodata\\n.incbin \\"ballast.bin\\"\\n.text");'
    (folder / "demo.c").write_text("\n".join(["extern int wanted(int);", ballast, *lines]))
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wl,--hash-style=gnu", "-o", "demo.so", "demo.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "demo.so"


def make_wheel(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def wheel(library: Path) -> bytes:
    return make_wheel(
        {
            "demo/__init__.py": b"",
            "demo/demo.so": library.read_bytes(),
            "demo/text.so": b"INPUT(demo.so)",
            "demo-1.0.dist-info/METADATA": b"Name: demo\nVersion: 1.0\n",
            "demo-1.0.dist-info/RECORD": b"demo/__init__.py,,\n",
        }
    )


def test_what_a_check_needs_costs_little(serve: Callable[..., str], wheel: bytes, library: Path) -> None:
    remote = RemoteWheel(serve(wheel))
    assert remote.file.name == "demo-1.0-py3-none-any.whl"
    assert [m.name for m in remote.members] == [
        "demo/__init__.py",
        "demo/demo.so",
        "demo/text.so",
        "demo-1.0.dist-info/METADATA",
        "demo-1.0.dist-info/RECORD",
    ]
    assert remote.members[1].size == library.stat().st_size
    assert remote.metadata() == "Name: demo\nVersion: 1.0\n"
    elf = remote.elf("demo/demo.so")
    assert elf.partial
    assert elf.symbols.exports == read(library).symbols.exports
    assert elf.symbols.imports == {b"wanted"}
    assert (len(SENT), remote.file.size) == (2, len(wheel))
    assert sum(SENT) < 130_000 < len(wheel)


def test_a_whole_member_can_be_streamed(serve: Callable[..., str], wheel: bytes, library: Path) -> None:
    remote = RemoteWheel(serve(wheel))
    with zipfile.ZipFile(io.BufferedReader(remote.file.open(), 1 << 20)) as archive:
        assert archive.read("demo/demo.so") == library.read_bytes()
    assert remote.read("demo/demo.so") == library.read_bytes()
    with pytest.raises(KeyError):
        remote.read("demo/absent.so")


def test_stored_members(serve: Callable[..., str], library: Path) -> None:
    remote = RemoteWheel(serve(make_wheel({"a.so": library.read_bytes()}, zipfile.ZIP_STORED)))
    assert remote.elf("a.so").symbols.imports == {b"wanted"}
    assert remote.read("a.so") == library.read_bytes()


def test_a_server_without_ranges_gives_small_wheels_whole(
    serve: Callable[..., str], wheel: bytes, library: Path
) -> None:
    remote = RemoteWheel(serve(wheel, without_ranges))
    assert remote.elf("demo/demo.so").symbols.exports == read(library).symbols.exports
    assert [len(wheel)] == SENT


def test_a_server_without_ranges_is_not_asked_for_a_large_wheel(serve: Callable[..., str]) -> None:
    def endless(handler: BaseHTTPRequestHandler, data: bytes) -> None:
        send(handler, 200, data, Content_Length=str(1 << 30))

    with pytest.raises(ExternalError) as caught:
        RemoteWheel(serve(b"x" * 1000, endless))
    assert caught.value.code == "wheel-no-ranges"
    assert caught.value.exit is Exit.EXTERNAL
    assert caught.value.where == "demo-1.0-py3-none-any.whl"


def test_what_is_no_library(serve: Callable[..., str], wheel: bytes) -> None:
    remote = RemoteWheel(serve(wheel))
    for name in ("demo/text.so", "demo/__init__.py"):
        with pytest.raises(ElfError) as caught:
            remote.elf(name)
        assert caught.value.code == "elf-not-elf"


def test_a_library_whose_symbols_are_out_of_reach(serve: Callable[..., str], library: Path) -> None:
    # As patchelf leaves them: nothing at the start but headers.
    data = bytearray(library.read_bytes())
    data[0x400:0x8000] = bytes(0x7C00)
    remote = RemoteWheel(serve(make_wheel({"a.so": bytes(data)})))
    with pytest.raises(ElfIncomplete):
        remote.elf("a.so", at_most=1 << 20)
    assert sum(SENT) < 1_300_000


BROKEN: dict[str, tuple[Callable[[bytes], bytes], Answer, str]] = {
    "not a zip": (lambda _: b"x" * 100_000, with_ranges, "wheel-broken"),
    "nothing": (lambda _: b"", without_ranges, "wheel-broken"),
    "cut": (lambda data: data[:-30], with_ranges, "wheel-broken"),
    "absent": (lambda data: data, lambda h, _: send(h, 404, b""), "wheel-refused"),
    "forbidden": (lambda data: data, lambda h, _: send(h, 403, b""), "index-refused"),
    "no range named": (lambda data: data, lambda h, d: send(h, 206, d[-9:]), "wheel-broken"),
    "another range": (
        lambda data: data,
        lambda h, d: send(h, 206, d[:9], Content_Range=f"bytes 0-8/{len(d)}"),
        "wheel-broken",
    ),
    "hangs up": (
        lambda data: data,
        lambda h, d: send(h, 206, d[-9:], Content_Range=f"bytes {len(d) - 999}-{len(d) - 1}/{len(d)}"),
        "wheel-unreachable",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_servers_and_archives_that_fail(serve: Callable[..., str], wheel: bytes, fault: str) -> None:
    change, answer, code = BROKEN[fault]
    with pytest.raises(ExternalError) as caught:
        RemoteWheel(serve(change(wheel), answer)).metadata()
    error = caught.value
    assert error.code == code
    assert "secret" not in f"{error.what}{error.where}{error.why}{error.fix}"


def test_no_server(serve: Callable[..., str]) -> None:
    # Without retries: they would only wait.
    session = requests.Session()
    with pytest.raises(ExternalError) as caught:
        RemoteWheel("http://127.0.0.1:9/demo.whl", session)
    assert caught.value.code == "wheel-unreachable"
    assert caught.value.what == "the wheel cannot be read from its server"


def test_a_bomb_is_not_inflated(serve: Callable[..., str]) -> None:
    # 200 MB of zeros; the program headers are claimed to stand behind them.
    header = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    header[0x20:0x28] = (190 << 20).to_bytes(8, "little")
    header[0x36:0x3A] = b"\x38\x00\x01\x00"
    files = {"bomb.so": bytes(header) + bytes(200 << 20), "x.dist-info/METADATA": bytes(64 << 20)}
    remote = RemoteWheel(serve(make_wheel(files)))
    for ask in (lambda: remote.elf("bomb.so"), remote.metadata):
        with pytest.raises(ExternalError) as caught:
            ask()
        assert caught.value.code == "wheel-broken"


@pytest.mark.parametrize("seed", range(40))
def test_a_directory_that_lies(serve: Callable[..., str], seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(
        make_wheel({"a.so": b"\x7fELF" + bytes(5000), "x.dist-info/METADATA": b"Name: x\n" * 50})
    )
    directory = data.find(b"PK\x01\x02")
    for _ in range(4):
        data[chance.randrange(directory, len(data))] = chance.choice([0, 1, 0x7F, 0xFF])
    try:
        remote = RemoteWheel(serve(bytes(data)))
        for member in remote.members:
            remote.read(member.name)
            remote.elf(member.name)
    except (ExternalError, ElfError):
        pass
