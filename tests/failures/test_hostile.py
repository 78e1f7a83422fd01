"""A log may hold anything: no line takes long, none grows memory, none reaches the terminal raw."""

import time
import tracemalloc
from pathlib import Path

import pytest

from jumar.failures import explained, fault_table, read_job
from jumar.failures.wording import lines_of
from tests.failures.explaining import explain


@pytest.mark.parametrize(
    "piece",
    [
        "[rank1]: ",
        "(",
        "a.",
        "| 1(1) ",
        "rank[1] ",
        "2024-01-01 ",
        "server[",
        "E1",
        "tag[a_",
        " ",
        "error ",
        'File "x',
        "File /a.py:1, ",
        "│ /a.py:1 ",
        r"\n ",
        r"\nError",
        "[ERROR] A(1,",
        "[aaaaaaaa] [a] ",
        "a.b/1 [",
        "exit code ",
        "returned 1 ",
        "signal (",
        "SIGHUP ",
        "status=",
        "[pod/a] ",
        "2024-01-01T00:00:00Z ",
        "Error: Caught a in ",
        "Error a | ",
        "Error !! a !! ",
        "Error)a.",
        "loss INFO ",
    ],
)
def test_matching_takes_linear_time_per_line(piece: str, tmp_path: Path) -> None:
    text = piece * (3_000_000 // len(piece))
    (tmp_path / "log.txt").write_text(text + "\nindex[1] SeqNum= error\n")
    start = time.thread_time()
    read_job([str(tmp_path / "log.txt")], fault_table())
    assert time.thread_time() - start < 10


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    line = (
        "[rank{}]: [Rank {}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum={}, OpType=X\n"
    )

    def peak(lines: int) -> int:
        log.write_text("".join(line.format(i % 8, i % 8, i) for i in range(lines)))
        tracemalloc.start()
        explained(read_job([str(log)], fault_table()))
        grown = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return grown

    peak(100)
    assert peak(8_000) < peak(1_000) + 200_000


def test_million_ranks_are_not_all_kept(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"[rank{i}]: MemoryError\n" for i in range(30_000)))
    assert len(read_job([str(log)], fault_table()).sightings) <= 20_000


def test_absurd_rank_is_ignored(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("world_size=9999999 rankSize[9999999]\n[rank0]: MemoryError\n")
    assert explain(log).job.world == 0


def test_markup_and_escapes_in_a_log_are_neutralised(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("\x1b[2J\x1b]0;title\x07[bold red]RuntimeError: CUDA out of memory.[/]\u202e\n")
    text = "\n".join(lines_of(explain(log), "en"))
    assert "[bold red]" in text  # printed as it stands: nothing reads markup


def test_many_ranks_that_failed_twice_are_judged_in_linear_time(tmp_path: Path) -> None:
    with (tmp_path / "log.txt").open("w") as log:
        for rank in range(8000):
            name = f"[rank{rank}]: "
            log.write(f'{name}Traceback (most recent call last):\n{name}  File "/a.py", line 3\n')
            log.write(f"{name}RuntimeError: bad\n{name}FileNotFoundError: [Errno 2] No such file\n")
    job = read_job([str(tmp_path / "log.txt")], fault_table())
    assert len(job.sightings) == 16_000
    start = time.thread_time()
    explained(job)
    assert time.thread_time() - start < 8


def test_states_that_end_again_and_again_are_read_in_linear_time(tmp_path: Path) -> None:
    waiting = "(Worker pid={}) Warning  FailedScheduling  11m  x  0/4 nodes are available: 4 full\n"
    lines = [waiting.format(pid) for pid in range(12_000)]
    lines += ["Normal  Scheduled  x  Successfully assigned a/b to c\n"] * 12_000
    (tmp_path / "log.txt").write_text("".join(lines))
    start = time.thread_time()
    job = read_job([str(tmp_path / "log.txt")], fault_table())
    assert time.thread_time() - start < 12
    assert all(sighting.survived for sighting in job.sightings)
