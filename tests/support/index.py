"""A package index on the loopback interface: a directory of wheels, served as PEP 691 asks, with what an index may add."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from packaging.utils import parse_wheel_filename

from envspec.fs import file_sha256


class LoopbackIndex:
    """What the index says; it may be changed while the index is running.

    `yanked` maps file names to reasons, `uploaded` file names to moments (RFC 3339); files in `gone` are not there any more.
    With `credentials` (`user:password`) everybody else is refused with `refusal`; `refused` counts them. `answer` stands in
    for every list of files, as it is.
    `html`: it speaks PEP 503 instead, as older indexes do. `asked` are the paths that were asked for, without the index's
    own part.
    """

    def __init__(self, directory: Path, address: str) -> None:
        self.directory = directory
        self.url = f"{address}/simple/"
        self.yanked: dict[str, str] = {}
        self.uploaded: dict[str, str] = {}
        self.gone: set[str] = set()
        self.html = False
        self.asked: list[str] = []
        self.credentials = ""
        self.refusal = 401
        self.refused = 0
        self.answer: bytes | None = None

    def page(self, package: str) -> bytes | None:
        """Return the list of files of a package, None if there is none."""
        if self.answer is not None:
            return self.answer
        paths = [
            path
            for path in sorted(self.directory.glob("*.whl"))
            if parse_wheel_filename(path.name)[0] == package and path.name not in self.gone
        ]
        files: list[dict[str, Any]] = [
            {
                "filename": path.name,
                "url": f"../../files/{path.name}",
                "hashes": {"sha256": file_sha256(path)},
                "size": path.stat().st_size,
                "upload-time": self.uploaded.get(path.name, "2026-01-01T00:00:00Z"),
                "yanked": self.yanked.get(path.name, False),
            }
            for path in paths
        ]
        if self.html:
            return "".join(map(_link, files)).encode() or None
        body = {"meta": {"api-version": "1.1"}, "name": package, "versions": [], "files": files}
        return json.dumps(body).encode() if files else None


def _link(row: dict[str, Any]) -> str:
    """One file in the form of PEP 503."""
    yanked = ' data-yanked=""' if row["yanked"] else ""
    address = f"{row['url']}#sha256={row['hashes']['sha256']}"
    return f'<a href="{address}"{yanked}>{row["filename"]}</a><br>\n'


@contextlib.contextmanager
def serve_index(directory: Path) -> Iterator[LoopbackIndex]:
    """Serve the wheels in a directory. Each index has an address of its own, so that no cache mistakes one for another."""
    token = secrets.token_hex(8)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            index.asked.append(self.path.removeprefix(f"/{token}"))
            parts = self.path.strip("/").split("/")
            wanted = "Basic " + base64.b64encode(index.credentials.encode()).decode()
            if index.credentials and self.headers.get("Authorization") != wanted:
                index.refused += 1
                self.send_response(index.refusal)
                self.send_header("WWW-Authenticate", 'Basic realm="index"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = None
            kind = "application/vnd.pypi.simple.v1+json"
            if parts[:2] == [token, "simple"] and len(parts) == 3:
                body = index.page(parts[2])
                kind = "text/html" if index.html else kind
            elif parts[:2] == [token, "files"] and (directory / parts[2]).is_file():
                body, kind = (directory / parts[2]).read_bytes(), "application/octet-stream"
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Cache-Control", "max-age=0")
            self.end_headers()
            if body and self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index = LoopbackIndex(directory, f"http://127.0.0.1:{server.server_address[1]}/{token}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
