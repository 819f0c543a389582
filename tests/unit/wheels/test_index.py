"""The releases of a package: from an index by JSON and by HTML, as uv finds it, and from a directory."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envspec.profile import Profile
from envspec.report.errors import ExternalError, UsageError
from envspec.uv.run import Uv
from envspec.wheels.index import releases
from tests.support.wheels import make_wheel

PYTHON = Path(sys.executable)
JSON = "application/vnd.pypi.simple.v1+json"
Page = Callable[[], tuple[str, bytes]]


class Index:
    """An index of one package `lib` on this machine: what it answers for the package's page is set by each test."""

    def __init__(self, root: Path) -> None:
        self.wheels = {
            path.name: path for path in (make_wheel(root, "lib", v) for v in ("1.0", "1.10", "1.9"))
        }
        self.page: Page = self.as_json
        self.asked: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                name = self.path.rpartition("/")[2]
                if self.path == "/simple/lib/":
                    kind, body = index.page()
                elif name in index.wheels:
                    kind, body = "application/zip", index.wheels[name].read_bytes()
                else:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/simple"

    def hash(self, name: str) -> str:
        return hashlib.sha256(self.wheels[name].read_bytes()).hexdigest()

    def as_json(self) -> tuple[str, bytes]:
        files = [
            {
                "filename": name, "url": f"../../files/{name}", "hashes": {"sha256": self.hash(name)}, "size": 7,
                "upload-time": "2026-05-01T10:20:30.123456Z", "yanked": "broken" if "1.9" in name else False,
            }
            for name in self.wheels
        ]  # fmt: skip
        files += [
            {"filename": "lib-1.0.tar.gz", "url": "../../files/lib-1.0.tar.gz", "hashes": {}, "yanked": False}
        ]
        return JSON, json.dumps({"meta": {"api-version": "1.1"}, "name": "lib", "files": files}).encode()

    def as_html(self) -> tuple[str, bytes]:
        links = [
            f'<a href="/files/{name}#sha256={self.hash(name)}"{" data-yanked" if "1.9" in name else ""}>{name}</a>'
            for name in self.wheels
        ]
        return (
            "text/html",
            f"<!DOCTYPE html><html><body>{''.join(links)}<a name='x'>no link</a></body></html>".encode(),
        )


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    index = Index(tmp_path / "wheels")
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture
def uv(index: Index, tmp_path: Path) -> Uv:
    """uv with that index and a cache of its own."""
    return Uv(base_env={**os.environ, "UV_DEFAULT_INDEX": index.url, "UV_CACHE_DIR": str(tmp_path / "cache")})


@pytest.mark.parametrize("form", ["json", "html"])
def test_the_newest_first_without_what_was_yanked(index: Index, uv: Uv, form: str) -> None:
    index.page = index.as_json if form == "json" else index.as_html
    found = releases("lib", uv, PYTHON)
    assert [str(version) for version in found] == ["1.10", "1.0"]
    (file,) = found[next(iter(found))]
    assert file.filename == "lib-1.10-py3-none-any.whl" and file.sha256 == index.hash(file.filename)
    assert file.url == index.url.replace("/simple", f"/files/{file.filename}")
    assert (file.size, file.uploaded) == ((7, "2026-05-01T10:20:30") if form == "json" else (0, ""))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"files": 3}',
        b'{"files": ["x"]}',
        b'{"files": [{"filename": "x"}]}',
        b'{"files": [{"filename": 1}]}',
    ],
)
def test_a_page_that_is_none(index: Index, uv: Uv, body: bytes) -> None:
    pages = iter([index.as_json()])
    index.page = lambda: next(pages, (JSON, body))  # uv reads the good one, envspec the other
    with pytest.raises(ExternalError) as caught:
        releases("lib", uv, PYTHON)
    assert caught.value.what == "the index answered with something that is not a list of files"


def test_an_index_that_goes_away(index: Index, uv: Uv) -> None:
    pages = iter([index.as_json()])
    index.page = lambda: next(pages)
    with pytest.raises(ExternalError) as caught:
        releases("lib", uv, PYTHON)
    assert (caught.value.code, caught.value.what) == ("network", "cannot read the releases of lib")


def test_a_package_that_the_index_does_not_have(index: Index, uv: Uv) -> None:
    with pytest.raises(UsageError) as caught:
        releases("nothing-of-the-kind", uv, PYTHON)
    assert caught.value.code == "unknown-package"


def test_a_directory_of_a_profile_needs_no_network(
    tmp_path: Path, local_profile: Callable[..., Profile]
) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(tmp_path / "wheels", "lib", version)
    make_wheel(tmp_path / "wheels", "library", "9.0")
    (tmp_path / "wheels/lib-3.0.whl").write_bytes(b"")
    found = releases("lib", Uv(offline=True), PYTHON, local_profile('lib = "*"'))
    assert [str(version) for version in found] == ["2.0", "1.0"]


def test_offline_nothing_is_asked(index: Index, tmp_path: Path) -> None:
    env = {**os.environ, "UV_DEFAULT_INDEX": index.url, "UV_CACHE_DIR": str(tmp_path / "cache")}
    releases("lib", Uv(base_env=env), PYTHON)
    index.asked.clear()
    with pytest.raises(ExternalError) as caught:
        releases("lib", Uv(base_env=env, offline=True), PYTHON)
    assert caught.value.code == "offline" and index.asked == []
