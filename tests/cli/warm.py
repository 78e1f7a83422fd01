"""Commands in forks of a process that has torch loaded already, to be signalled and killed.

A process of its own takes three seconds until it has imported what a run needs. Each fork is
still a process with its own folder, signals and exit status.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOADED = ("torch._dynamo", "jumar.runs.train", "jumar.runs.evaluate")
CHECKOUT = Path(__file__).resolve().parents[2]
LIMIT_S = 120


class Child:
    """A command that runs; its lines can be read while it does."""

    def __init__(self, server: "Server", pid: int, printed: Path, errors: Path) -> None:
        self._server = server
        self.pid = pid
        self.stdout = printed.open()
        self._errors = errors
        self.returncode: int | None = None

    def wait_for(self, beginning: str) -> None:
        """Read lines up to one that begins like this."""
        seen: list[str] = []
        for line in self.stdout:
            seen.append(line)
            if line.startswith(beginning):
                return
        self.wait()
        raise AssertionError(
            f"no line begins with '{beginning}': {seen}\n{self._errors.read_text()}"
        )

    def send_signal(self, number: int) -> None:
        """Send the command a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """As `kill -9` does; its workers may live on for seconds."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        """The exit status, when it has ended."""
        if self.returncode is None:
            self.returncode = self._server.status_of(self.pid)
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """The rest of its lines and all its errors, when it has ended."""
        with self.stdout:
            rest = self.stdout.read()
        self.wait()
        return rest, self._errors.read_text()


class Server:
    """The process that forks."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._count = 0
        paths = [str(CHECKOUT), str(CHECKOUT / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.warm"],
            cwd=CHECKOUT,
            env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *arguments: str | Path, cwd: Path) -> Child:
        """Start `jumar` in a folder."""
        self._count += 1
        printed, errors = (self._scratch / f"{self._count}.{kind}" for kind in ("out", "err"))
        os.mkfifo(printed)
        request = {"arguments": [str(a) for a in arguments], "folder": str(cwd)}
        pid = self._ask({**request, "printed": str(printed), "errors": str(errors)})
        return Child(self, pid, printed, errors)

    def status_of(self, pid: int) -> int:
        """Wait for a fork; minus the number of the signal that ended it."""
        return self._ask({"wait": pid})

    def close(self) -> None:
        """End the process that forks."""
        self._process.communicate(timeout=10)

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def running(scratch: Path) -> Iterator[Server]:
    """A server for as long as the block lasts."""
    server = Server(scratch)
    try:
        yield server
    finally:
        server.close()


def serve() -> None:
    """Answer requests until standard input ends; in a fork, become the command."""
    for name in LOADED:
        importlib.import_module(name)
    # Without this, a fork copies torch's pages as it leaves.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        child = os.fork()
        if child == 0:
            become(request)
        print(child, flush=True)


def become(request: dict[str, Any]) -> None:
    """Turn this fork into the command, and leave with its status."""
    from jumar.cli.main import run

    os.setsid()
    signal.alarm(LIMIT_S)
    os.chdir(request["folder"])
    sys.path.insert(0, request["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(request["printed"], os.O_WRONLY), 1)
    os.dup2(os.open(request["errors"], os.O_WRONLY | os.O_CREAT), 2)
    run(request["arguments"])


if __name__ == "__main__":
    serve()
