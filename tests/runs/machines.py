"""Machines that are network namespaces of this one: cables, addresses and losses are real.

Each has an interface `eth0` on one bridge, and nothing else to reach another by. They share this
machine's disk. No root is needed where the kernel lets a user make namespaces.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pytest

from tests.cli.command_line import CHECKOUT, environment
from tests.cli.paced_source import PACE

NEEDED = ("unshare", "nsenter", "ip", "tc")
PORT = 29400


def missing() -> str:
    """Why there can be no machines here; empty if there can."""
    for program in NEEDED:
        if shutil.which(program) is None:
            return f"needs {program}, for machines that are network namespaces"
    made = ["unshare", "-Urnm", "sh", "-c", "ip link add name b0 type bridge"]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    reason = (done.stderr.strip().splitlines() or [""])[-1]
    return f"network namespaces are not permitted: {reason}" if done.returncode else ""


class Machine:
    """One of several, with what runs on it."""

    def __init__(self, machines: "Machines", number: int) -> None:
        self._machines, self.number = machines, number
        self.address = f"10.77.0.{number + 1}"
        self.log = machines.folder / f"machine-{number}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def torchrun(self, nodes: str, *arguments: str, pace_s: float) -> None:
        """Start one rank of `jumar`, as a user would on this machine."""
        launched = ["--nnodes", nodes, "--nproc-per-node", "1", "--max-restarts", "9"]
        # By its name torchrun would recognise the host itself; these machines share one.
        is_host = str(self.number == 0).lower()
        conf = f"last_call_timeout=2,is_host={is_host}"
        launched += ["--rdzv-backend", "c10d", "--rdzv-conf", conf]
        launched += ["--rdzv-endpoint", f"{self._machines[0].address}:{PORT}"]
        launched += ["--local-addr", self.address, "-m", "jumar", *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._inside, sys.executable, "-m", "torch.distributed.run", *launched],
                cwd=self._machines.folder,
                env={
                    **environment(),
                    "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}",
                    "GLOO_SOCKET_IFNAME": "eth0",
                    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                    PACE: str(pace_s),
                },
                stdout=log,
                stderr=log,
            )

    @property
    def _inside(self) -> list[str]:
        return self._machines.command("ip", "netns", "exec", f"m{self.number}")

    def cable(self, state: str) -> None:
        """Unplug the cable (`down`) or plug it in (`up`), without notice."""
        self._machines.do("ip", "link", "set", f"e{self.number}", state)

    def disturb(self) -> None:
        """Delay and lose packets; where the kernel has no netem, a narrow and full line does."""
        netem, narrow = "netem delay 5ms loss 1%", "tbf rate 8mbit burst 8k latency 20ms"
        added = ("tc", "qdisc", "add", "dev", f"e{self.number}", "root")
        if self._machines.tried(*added, *netem.split()):
            self._machines.do(*added, *narrow.split())

    def narrow(self) -> None:
        """Leave a tenth of a gigabit of the way here."""
        narrow = "tbf rate 100mbit burst 32k latency 50ms"
        dev = f"e{self.number}"
        self._machines.do("tc", "qdisc", "add", "dev", dev, "root", *narrow.split())

    def power_off(self) -> None:
        """Kill everything that was started on it, at once."""
        if self.process is not None:
            for member in _descendants(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            self.process.wait()

    def worker(self) -> int:
        """The process of its rank."""
        assert self.process is not None
        return next(
            member
            for member in _descendants(self.process.pid)
            if b"\0-m\0jumar\0" in (line := Path(f"/proc/{member}/cmdline").read_bytes())
            and b"torch.distributed.run" not in line
        )

    def text(self) -> str:
        """All that was printed here."""
        return self.log.read_text() if self.log.exists() else ""

    def wait_for(self, words: str, *, within_s: float, times: int = 1) -> float:
        """Wait until words were printed so often; returns how long that took."""
        began = time.monotonic()
        while self.text().count(words) < times:
            if time.monotonic() - began > within_s:
                pytest.fail(f"no {words!r} within {within_s} s:\n{self._machines.texts()}")
            time.sleep(0.1)
        return time.monotonic() - began

    def end(self, *, within_s: float) -> int:
        """Wait for torchrun's end; returns its exit status."""
        assert self.process is not None
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {within_s} s:\n{self._machines.texts()}")


class Machines(Sequence[Machine]):
    """Several machines on one bridge, for the time of a `with` block."""

    def __init__(self, count: int, folder: Path) -> None:
        self.folder = folder
        self._machines = [Machine(self, number) for number in range(count)]
        self._holder: subprocess.Popen[bytes] | None = None

    def __getitem__(self, index: int) -> Machine:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._machines[index]

    def __len__(self) -> int:
        return len(self._machines)

    def __enter__(self) -> "Machines":
        self._holder = subprocess.Popen(
            ["unshare", "-Urnm", "sh", "-c", "echo ready; exec sleep 600"], stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        self.do("mount", "-t", "tmpfs", "none", "/run")
        self.do("ip", "link", "add", "name", "b0", "type", "bridge")
        self.do("ip", "link", "set", "b0", "up")
        for machine in self._machines:
            name, cable = f"m{machine.number}", f"e{machine.number}"
            self.do("ip", "netns", "add", name)
            ends = ["type", "veth", "peer", "name", "eth0", "netns", name]
            self.do("ip", "link", "add", cable, *ends)
            self.do("ip", "link", "set", cable, "master", "b0", "up")
            self.do("ip", "-n", name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
            self.do("ip", "-n", name, "link", "set", "eth0", "up")
            self.do("ip", "-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for machine in self._machines:
            machine.power_off()
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def command(self, *words: str) -> list[str]:
        """A command as it is run where the cables are."""
        assert self._holder is not None
        holder = [
            "nsenter",
            "-t",
            str(self._holder.pid),
            "-U",
            "-n",
            "-m",
            "--preserve-credentials",
        ]
        # Not `--wd`, whose folder stays another mount's: files could not be renamed in it.
        return [*holder, "sh", "-c", 'cd "$0" && exec "$@"', str(self.folder), *words]

    def do(self, *words: str) -> None:
        """Run a command where the cables are."""
        fault = self.tried(*words)
        assert not fault, f"{words}: {fault}"

    def tried(self, *words: str) -> str:
        """Run a command where the cables are; returns what it says if it fails."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        return done.stderr or "failed" if done.returncode else ""

    def texts(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"== {m.number}\n{m.text()[-3000:]}" for m in self._machines)


def _descendants(ancestor: int) -> list[int]:
    """A process and all that it started, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    result = [ancestor]
    for each in result:
        result += children.get(each, [])
    return result
