"""A CONNECT proxy on the loopback that counts what comes through it: exact bytes of one command, whatever else runs."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Counter:
    """Bytes that came from the servers, TLS included, and the number of connections."""

    def __init__(self) -> None:
        self.received = 0
        self.connections = 0
        self.lock = threading.Lock()


@contextlib.contextmanager
def counting_proxy() -> Iterator[tuple[str, Counter]]:
    """The proxy's address and its counter, while the context lasts."""
    counter = Counter()
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(server, counter), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}", counter
    finally:
        server.close()


def _serve(server: socket.socket, counter: Counter) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_connect, args=(client, counter), daemon=True).start()


def _connect(client: socket.socket, counter: Counter) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(4096)
        if not piece:
            return
        head += piece
    host, _, port = head.split()[1].decode().rpartition(":")
    try:
        remote = socket.create_connection((host, int(port)), timeout=30)
    except OSError:
        client.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        client.close()
        return
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    with counter.lock:
        counter.connections += 1
    threading.Thread(target=_pump, args=(client, remote, None), daemon=True).start()
    _pump(remote, client, counter)


def _pump(source: socket.socket, target: socket.socket, counter: Counter | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            if counter is not None:
                with counter.lock:
                    counter.received += len(data)
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
