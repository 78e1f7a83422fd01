"""What a line says of its origin: rank, process, node, time."""

from datetime import datetime

import pytest

from jumar.failures.reading.forms import (
    YEARLESS,
    complete,
    continues,
    is_warning,
    origin_of,
    rank_in_name,
    time_in,
)


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[rank3]: ValueError: x", 3, "ValueError: x"),
        (": [rank18]: Last error:", 18, "Last error:"),
        ("[default5]:Traceback", 5, "Traceback"),
        ("[1,3]<stderr>:KeyError: 1", 3, "KeyError: 1"),
        ("  7: srun labels its lines", None, "  7: srun labels its lines"),
        ("7: srun labels its lines", 7, "srun labels its lines"),
        ("[80746] [rank0]:[E321 02:07:08.4 a.cpp:6] x", 0, "[E321 02:07:08.4 a.cpp:6] x"),
        ("(Worker_DP1_TP1_EP9 pid=244584) ERROR 01-06 19:37:15 [a.py:824] x", 9, "x"),
        ("(VllmWorker rank=1 pid=7226) ERROR 09-03 03:02:37 [a.py:522] x", 1, "x"),
        ("2026-10-10T01:49:39.123456789Z stderr F [rank2]: x", 2, "x"),
        ("node-4 | [rank2]: x", 2, "x"),
        ("ERROR 04-10 11:26:01 engine.py:140] KeyError: 1", None, "KeyError: 1"),
        ("\x1b[36m(WorkerDict pid=7)\x1b[0m KeyError: 1", None, "KeyError: 1"),
        ("[36m(WorkerDict pid=7)[0m KeyError: 1", None, "KeyError: 1"),
        ("[Stage-0] ERROR 01-30 18:03:36 [diffusion_worker.py:344] x", None, "x"),
        ("scheduler.log-58-[WARNING] x", None, "[WARNING] x"),
        ("trainer.pretrain/0 [default1]:[rank1]: KeyError: 'a'", 1, "KeyError: 'a'"),
        ("data/0 is a folder", None, "data/0 is a folder"),
        (" 111  [rank1]: KeyError: 'a'", 1, "KeyError: 'a'"),
        ("125:[rank1]: KeyError: 'a'", 1, "KeyError: 'a'"),
        ("(VllmWorker TP1 pid=961) ERROR 09-07 01:11:09 [a.py:596] x", 1, "x"),
        ("[rank: 1] ValueError: x", 1, "ValueError: x"),
        ("Rank 2: ValueError: x", 2, "ValueError: x"),
        ("[3]:ValueError: x", 3, "ValueError: x"),
        ("[3]:", None, "[3]:"),
        ("[pod/job-worker-0/pytorch] [rank4]: x", 4, "x"),
        ("2024-06-17T13:18:29.3716228Z [rank2]: x", 2, "x"),
        ("plain text", None, "plain text"),
    ],
)
def test_launcher_prefixes_are_stripped(line: str, rank: int | None, text: str) -> None:
    place = origin_of(line)
    assert (place.rank, place.text) == (rank, text)


@pytest.mark.parametrize(
    ("line", "rank", "pid"),
    [
        ("[ERROR] 2024-05-21-11:57:54 (PID:927000, Device:3, RankID:3) ERR02200 DIST", 3, 927000),
        ("[ERROR] 2024-05-21-11:57:54 (PID:927000, Device:3, RankID:-1) ERR02200", None, 927000),
        ("[INFO] HCCL(69395,python3):2024 Entry:ranks[4], rank[2], rootinfo", 2, 69395),
        ("[INFO] HCCL(858941,x):2025 [LocalRank Key Info]userRank[6] hostIp[127.0.0.1]", 6, 858941),
        ("EI0006: [PID: 1292363] 2025-04-08 Getting socket times out.", None, 1292363),
        ("ng30903:3063028:3066152 [3] NCCL INFO comm 0x5 rank 5 nranks 8 cudaDev 1", 5, 3063028),
    ],
)
def test_rank_and_process_are_found_in_a_line(line: str, rank: int | None, pid: int) -> None:
    place = origin_of(line)
    complete(place, line)
    assert (place.rank, place.pid) == (rank, pid)


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2024-04-07-18:35:53.134.675 [op_base.cc]", datetime(2024, 4, 7, 18, 35, 53, 134675)),
        ("2026-06-08 19:04:36,139 - root", datetime(2026, 6, 8, 19, 4, 36, 139000)),
        ("20260831-01:43:41.474 TrainWorker", datetime(2026, 8, 31, 1, 43, 41, 474000)),
        ("[E814 01:57:12.984417033 a.cpp:5]", datetime(YEARLESS, 8, 14, 1, 57, 12, 984417)),
        ("W1203 16:08:45.014881 a.cpp:5]", datetime(YEARLESS, 12, 3, 16, 8, 45, 14881)),
        ("ERROR 08-26 03:01:18 [engine.py:458]", datetime(YEARLESS, 8, 26, 3, 1, 18)),
        ("2024-13-45 99:99:99", None),
        ("no time", None),
    ],
)
def test_timestamps_of_all_formats_are_parsed(line: str, time: datetime | None) -> None:
    assert time_in(line) == time


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("logs/rank3.txt", 3),
        ("logs/train_rank_12.log", 12),
        ("run/attempt_0/5/stderr.log", 5),
        ("job/rank7/plog-1_2.log", 7),
        ("plog-69395_20240407183553.log", None),
        ("crank3.log", None),
        ("msrun_log/worker_3.log", 3),
        ("my_worker_3.log", None),
    ],
)
def test_rank_is_parsed_from_a_file_name(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("INFO 08-17 13:45:10 [__init__.py:243] No platform detected", True),
        ("2024-01-01 10:00:00,123 - root - INFO - out of memory, smaller batch", True),
        ("2024-01-01 10:00:00.123 | INFO     | main:run:95 - No module named 'apex'", True),
        ("INFO:root:No module named 'apex'", True),
        ("I0725 19:18:06.995957 1 init.cc:235] Load failed", True),
        ("2023-01-01 10:00:00.1: I tensorflow/a.cc:29] Ignore above dlerror", True),
        ("wandb: ERROR Error while calling the API: permission denied", True),
        ("n1:2:3 [0] NCCL INFO NET/Plugin : Plugin load returned 2 : cannot open", True),
        ("n1:2:3 [0] NCCL INFO misc/socket.cc:64 -> 3", False),
        ("ValueError: no INFO here", False),
        ("E0725 19:18:06.995957 1 init.cc:235] Load failed", False),
        ("vec error info: 0xa1, mte error info: 0x3", False),
    ],
)
def test_line_that_informs_only(line: str, is_one: bool) -> None:
    assert is_warning(line) == is_one


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("No module named 'flash_attn', falling back to sdpa", True),
        ("Apex not installed: No module named 'apex'", True),
        ("out of memory, skipping batch", True),
        ("librdmacm.so.1: cannot open shared object file (ignored)", True),
        ("No module named 'apex'", False),
    ],
)
def test_program_that_goes_on_without_something(line: str, is_one: bool) -> None:
    assert continues(line) == is_one
