"""Stores for tests: moto's server in a separate process, behind a proxy that fails."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BUCKET = "bucket"
KEY, SECRET = "AKIA-of-the-tests", "a-secret-of-the-tests"


@dataclass(frozen=True)
class Server:
    """A store that answers on this machine.

    Attributes:
        endpoint: Its URL.
        requests: The requests so far, as `METHOD path`; filled by a proxy alone.
    """

    endpoint: str
    requests: list[str] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """The variables with which this store is reached."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def moto_server() -> Generator[Server]:
    """moto's server with one empty bucket."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
                urllib.request.urlopen(request, timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, "moto's server has ended"
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield Server(endpoint)
    finally:
        process.kill()
        process.wait()


Fault = Callable[["ProxyHandler", int], bool]
"""Called with the request and its number from 1; returns whether it has been dealt with."""


class ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fault: Fault
    upstream: str
    requests: list[str]
    counter: list[int]
    lock: threading.Lock

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def forwarded(self) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(self.upstream, timeout=30)
        headers = dict(self.headers.items())
        connection.request(self.command, self.path, self.body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content

    def answer(self, response: HTTPResponse, content: bytes, length: int | None = None) -> None:
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        given = response.getheader("Content-Length")
        stated = int(given) if self.command == "HEAD" and given else len(content)
        self.send_header("Content-Length", str(stated if length is None else length))
        self.end_headers()
        self.wfile.write(content)

    def drop(self) -> None:
        """End the connection without an answer, as a server does that dies."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        with self.lock:
            self.counter[0] += 1
            number = self.counter[0]
            self.requests.append(f"{self.command} {self.path}")
        if self.fault(self, number):
            return
        try:
            self.answer(*self.forwarded())
        except (HTTPException, OSError):
            self.drop()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve  # noqa: N815


class _ProxyServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def proxy(behind: Server, fault: Fault) -> Generator[Server]:
    """A server that passes requests on, except those that a fault deals with."""
    requests: list[str] = []
    handler = type(
        "Handler",
        (ProxyHandler,),
        {
            "fault": staticmethod(fault),
            "upstream": behind.endpoint.removeprefix("http://"),
            "requests": requests,
            "counter": [0],
            "lock": threading.Lock(),
        },
    )
    server = _ProxyServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def every_tenth_fails(handler: ProxyHandler, number: int) -> bool:
    """One request in ten: by turns an error, no answer, half an answer, a lying length."""
    if number % 10:
        return False
    turn = number // 10 % 4
    if turn == 0:
        handler.send_response_only(503)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    elif turn == 1:
        handler.drop()
    else:
        response, content = handler.forwarded()
        half = content[: len(content) // 2]
        handler.answer(response, half, length=len(content) if turn == 2 else None)
        if turn == 2:
            handler.drop()
    return True


def slow(handler: ProxyHandler, number: int) -> bool:
    """Every answer begins late."""
    time.sleep(0.05)
    return False


class Dies:
    """Works for some requests, and then never again until it is revived."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, handler: ProxyHandler, number: int) -> bool:
        if number <= self.after:
            return False
        handler.drop()
        return True


def is_moto_installed() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("obstore", "moto", "flask", "flask_cors"))


def put_folder(server: Server, folder: Path, prefix: str) -> None:
    """Write a folder's files below a prefix, without the code under test."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(folder)}"
            request = urllib.request.Request(
                f"{server.endpoint}/{BUCKET}/{key}",
                data=path.read_bytes(),
                method="PUT",
                headers={"Content-Type": "application/octet-stream"},
            )
            urllib.request.urlopen(request, timeout=30).close()


def environment(server: Server, cache: Path, **more: str) -> dict[str, str]:
    """This process's variables with a store and a cache."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, **server.environment(), "JUMAR_CACHE": str(cache), **more}
