"""Ranks that are forks of this process, which has loaded what all of them need."""

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from jumar.cli.main import run


def start_ranks(world: int, work: Callable[[int], None]) -> list[int]:
    """Fork the ranks of one job; returns their processes.

    Args:
        world: How many.
        work: Runs in each with its rank, where the environment says what torchrun's would.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes: list[int] = []
    for rank in range(world):
        process = os.fork()
        if process:
            processes.append(process)
            continue
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
        os.environ.update(LOCAL_WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        code = 1
        try:
            work(rank)
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return processes


def run_ranks(world: int, work: Callable[[int], None], *, limit_s: float) -> None:
    """Fork the ranks of one job and wait for their end.

    Raises:
        RuntimeError: One failed, or the time was up; the others are killed.
    """
    running = start_ranks(world, work)
    end = time.monotonic() + limit_s
    failed = False
    try:
        while running and not failed:
            for process in list(running):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    running.remove(process)
                    failed |= status != 0
            failed |= time.monotonic() > end
            time.sleep(0.002)
    finally:
        send(running, signal.SIGKILL)
        for process in running:
            os.waitpid(process, 0)
    if failed:
        raise RuntimeError(f"of {world} ranks one failed, or took longer than {limit_s:.0f} s")


def command_line(command: Sequence[str], world: int, log: Path) -> Callable[[int], None]:
    """What ranks do that run a command of jumar, with a log as their output."""

    def work(rank: int) -> None:
        del rank
        if world == 1:
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
                os.environ.pop(name)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["jumar", *command]
        run()

    return work


def send(processes: Sequence[int], number: signal.Signals) -> None:
    """Send all a signal; some may have ended."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
