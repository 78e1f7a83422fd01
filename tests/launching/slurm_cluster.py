"""Slurm on this machine, for tests: one controller, and a daemon for each of two nodes."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "scontrol", "squeue", "scancel")
_PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def missing_programs() -> list[str]:
    """The programs of Slurm and munge that this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PLACES) is None]


@contextlib.contextmanager
def cluster(folder: Path) -> Generator[dict[str, str]]:
    """Two nodes, n1 and n2, whose names do not resolve; returns the environment for its clients."""
    # munge refuses a key or socket below a folder that others may write to.
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    beside = folder / "munge"
    beside.mkdir(mode=0o755)
    ports = _free_ports(3)
    config = folder / "slurm.conf"
    config.write_text(_config(folder, ports))
    environment = {**os.environ, "SLURM_CONF": str(config), "PATH": _PLACES}
    started: list[subprocess.Popen[bytes]] = []
    for name in ("state", "spool.n1", "spool.n2"):
        (folder / name).mkdir()
    try:
        for command in (
            [
                "munged",
                "--foreground",
                "--force",
                f"--key-file={key}",
                f"--socket={beside}/munge.sock",
                f"--pid-file={beside}/munged.pid",
                f"--log-file={beside}/munged.log",
                f"--seed-file={beside}/seed",
            ],
            ["slurmctld", "-D", "-c"],
            ["slurmd", "-D", "-N", "n1"],
            ["slurmd", "-D", "-N", "n2"],
        ):
            with (folder / "daemons.log").open("ab") as log:
                started.append(
                    subprocess.Popen(
                        command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                )
            if command[0] == "munged":
                _wait((beside / "munge.sock").exists, folder)
        _wait(lambda: _idle(environment) == 2, folder)
        yield environment
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()


def wait_for(number: str, environment: dict[str, str], seconds: float = 120) -> str:
    """The state in which a job ends."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shown = _said(["scontrol", "--oneliner", "show", "job", number], environment)
        state = next((part[9:] for part in shown.split() if part.startswith("JobState=")), "")
        if state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", ""):
            return state
        time.sleep(0.3)
    return "TIMEOUT"


def _idle(environment: dict[str, str]) -> int:
    return _said(["sinfo", "--noheader", "-N", "-o", "%N %t"], environment).count(" idle")


def _said(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=30, check=False
    ).stdout


def _wait(condition, folder: Path, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, (folder / "daemons.log").read_text()
        time.sleep(0.1)


def _free_ports(number: int) -> list[int]:
    """Free ports, the last two of them next to each other."""
    while True:
        with contextlib.ExitStack() as open_ones:
            sockets = [open_ones.enter_context(socket.socket()) for _ in range(number)]
            try:
                sockets[0].bind(("127.0.0.1", 0))
                sockets[1].bind(("127.0.0.1", 0))
                second = sockets[1].getsockname()[1]
                sockets[2].bind(("127.0.0.1", second + 1))
            except OSError:
                continue
            return [sockets[0].getsockname()[1], second, second + 1]


def _config(folder: Path, ports: list[int]) -> str:
    host = socket.gethostname()
    return f"""\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
KillWait=5
FirstJobId={random.randrange(1, 20000)}
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
