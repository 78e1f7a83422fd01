"""Which of several faults is named first."""

from pathlib import Path

import pytest

from tests.failures.explaining import explain_text, named

RAISED = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.mark.parametrize(
    "warning",
    [
        "train.py:3: UserWarning: No module named 'apex', falling back\n",
        "2021-08-17 16:49:31 - mmcls - WARNING - No module named 'apex', falling back\n",
        "[rank0]:[W810 03:04:11.061727749 a.cpp:683] No module named 'apex', falling back\n",
        "W0810 03:04:11.061 12 torch/x.py:1] No module named 'apex', falling back\n",
        "[W socket.cpp:601] No module named 'apex', falling back\n",
        "2020-01-01 01:01:01.000001: W tensorflow/x.cc:1] No module named 'apex'\n",
    ],
)
def test_warnings_rank_after_raised_errors(tmp_path: Path, warning: str) -> None:
    explanation = explain_text(tmp_path, log=warning + RAISED)
    assert named(explanation) == ["cuda-out-of-memory", "module-missing"]


def test_earlier_of_two_raised_errors_is_first(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log="ImportError: No module named 'apex'\n" + RAISED)
    assert named(explanation) == ["module-missing", "cuda-out-of-memory"]


def test_nccl_warnings_count_as_errors(tmp_path: Path) -> None:
    line = (
        "n1:12:12 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left\n"
    )
    assert named(explain_text(tmp_path, log=line + RAISED))[0] == "nccl-shared-memory"


def test_single_warning_is_still_named(tmp_path: Path) -> None:
    line = "train.py:3: UserWarning: No module named 'apex', falling back\n"
    assert named(explain_text(tmp_path, log=line)) == ["module-missing"]


def test_raised_error_replaces_a_fault_that_was_only_warned_of_before(tmp_path: Path) -> None:
    log = """\
joblib/_helpers.py:46: UserWarning: [Errno 28] No space left on device.  joblib is serial
Traceback (most recent call last):
  File "/job/finetune.py", line 55, in main
    mp.spawn(run, nprocs=n_gpus, args=(n_gpus, hps,))
OSError: [Errno 28] No space left on device
"""
    candidate = explain_text(tmp_path, log=log).candidates[0]
    assert candidate.fault.id == "disk-full"
    assert (candidate.first.line, candidate.first.frame) == (5, "/job/finetune.py:55")
    assert candidate.first.count == 2


def test_first_of_two_raised_errors_represents_a_fault(tmp_path: Path) -> None:
    log = "OSError: [Errno 28] a\nOSError: [Errno 28] b\n"
    assert explain_text(tmp_path, log=log).candidates[0].first.line == 1


def test_warning_does_not_explain_an_exception_that_follows(tmp_path: Path) -> None:
    log = "train.py:3: UserWarning: No module named 'apex', falling back\nValueError: no\n"
    assert named(explain_text(tmp_path, log=log)) == ["python-exception", "module-missing"]


def test_lines_above_the_first_time_of_a_log_count_as_earlier(tmp_path: Path) -> None:
    log = """\
[rank0]: RuntimeError: setup failed!
[ERROR] 2025-06-28-15:57:56 (PID:118889, Device:0, RankID:-1) ERR00100 PTA call acl api failed
"""
    assert named(explain_text(tmp_path, log=log))[0] == "atb-failed"


def test_note_at_the_exit_of_torch_npu_is_no_cause(tmp_path: Path) -> None:
    note = "[ERROR] 2025-06-28-15:57:56 (PID:1, Device:0) ERR99999 UNKNOWN applicaiton exception\n"
    assert named(explain_text(tmp_path, log=note + "ValueError: no\n")) == ["python-exception"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Killed", ["process-killed"]),
        (
            "slurm_script: line 28:  8156 Killed                  python3 main.py",
            ["process-killed"],
        ),
        ("./run.sh: 行 3: 12 已杀死               python main.py", ["process-killed"]),
        ("3 jobs were Killed here", []),
        ("Killed by the rule", []),
    ],
)
def test_process_that_the_shell_reports_as_killed(
    tmp_path: Path, line: str, fault: list[str]
) -> None:
    assert named(explain_text(tmp_path, log=f"step 1\n{line}\n")) == fault


def test_start_of_a_worker_that_was_cut_off_follows_from_the_killed_process(tmp_path: Path) -> None:
    log = """\
torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL
_pickle.UnpicklingError: pickle data was truncated
"""
    assert named(explain_text(tmp_path, log=log)) == ["process-killed"]


@pytest.mark.parametrize(
    "line", ["0 errors", "errors: 0", "no error found", "ignored errors so far", "error=none"]
)
def test_lines_that_tell_of_no_error_are_not_shown_as_errors(tmp_path: Path, line: str) -> None:
    explanation = explain_text(tmp_path, log=f"{line}\nsome error here\n")
    assert [error.text for error in explanation.errors] == ["some error here"]


@pytest.mark.parametrize(
    ("cause", "effect", "first"),
    [
        (
            "Malloc device memory failed, Device 0 may be other processes occupying this card",
            "The argument is invalid.Reason: rtGetDevMsg execute failed, reason=[x]",
            "npu-memory-taken",
        ),
        (
            "EL0005: [PID: 278] 2025-08-26-03:01:17.531.512 The resources are busy.",
            "The argument is invalid.Reason: rtGetDevMsg execute failed, reason=[x]",
            "npu-device-busy",
        ),
        (
            "RuntimeError: NPU out of memory. Tried to allocate 1.90 GiB",
            "The argument is invalid.Reason: rtGetDevMsg execute failed, reason=[x]",
            "npu-out-of-memory",
        ),
        ("Failed to verify the OPP", "error code is 507033", "npu-opp-unverified"),
        ("hccl fftsplus task timeout occurred", "reason=[task timeout]", "hccl-task-timeout"),
        (
            "OSError: [Errno 28] No space left on device",
            "_pickle.UnpicklingError: pickle data was truncated",
            "disk-full",
        ),
        ("exitcode: -9", "A process in the process pool was terminated abruptly", "process-killed"),
        (
            "ncclInvalidArgument: Invalid value for an argument.",
            "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784",
            "nccl-aborted-arguments",
        ),
    ],
)
@pytest.mark.parametrize("is_first_in_the_log", [True, False])
def test_fault_follows_from_its_cause_in_either_order(
    tmp_path: Path, cause: str, effect: str, first: str, is_first_in_the_log: bool
) -> None:
    lines = (cause, effect) if is_first_in_the_log else (effect, cause)
    assert named(explain_text(tmp_path, log="\n".join(lines) + "\n")) == [first]


WARNED = "INFO 08-17 13:45:10 [a.py:2] No module named 'apex'\n"
MENTIONED = "Could not import the fused norm: No module named 'apex'\n"


@pytest.mark.parametrize("notice", [WARNED, MENTIONED])
@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("ValueError: no\n", "python-exception"),
        ("RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB\n", "npu-out-of-memory"),
        ("  traceback : Signal 9 (SIGKILL) received by PID 31235\n", "process-killed"),
        ("hccl fftsplus task timeout occurred\n", "hccl-task-timeout"),
    ],
)
def test_what_a_program_survived_explains_nothing_that_ended_it(
    tmp_path: Path, notice: str, line: str, fault: str
) -> None:
    assert named(explain_text(tmp_path, log=notice + line))[0] == fault


def test_mention_is_the_cause_if_nothing_ended_the_job_after_it(tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log=MENTIONED)) == ["module-missing"]
    assert (
        named(explain_text(tmp_path, log="ValueError: no\nstep\nstep\nstep\nstep\n" + MENTIONED))[0]
        == "module-missing"
    )


def test_message_of_an_exception_over_several_lines_is_no_mention(tmp_path: Path) -> None:
    log = "OddError: could not load it, for this reason:\nNo module named 'apex'\nKeyError: 1\n"
    assert named(explain_text(tmp_path, log=log))[0] == "module-missing"


def test_raised_exception_replaces_a_fault_that_was_only_mentioned_before(tmp_path: Path) -> None:
    log = MENTIONED + "a\n" * 5 + "ModuleNotFoundError: No module named 'apex'\n"
    assert explain_text(tmp_path, log=log).candidates[0].first.line == 7


def test_warning_long_before_does_not_make_a_fault_late(tmp_path: Path) -> None:
    log = """\
2024-01-01 10:00:00,000 - a - INFO - No module named 'apex'
2024-01-01 12:00:00,000 - a - ERROR - NPU out of memory. Tried to allocate
2024-01-01 12:00:01,000 - a - ERROR - CUDA error: unspecified launch failure
"""
    assert named(explain_text(tmp_path, log=log))[0] == "npu-out-of-memory"


@pytest.mark.parametrize(
    "gone",
    [
        "remote process exited or there was a network error",
        "RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.1]",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely "
        "closed. Did the remote server shutdown or crash?",
        "RuntimeError: Engine core initialization failed. See root cause above.",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "RuntimeError: DataLoader worker (pid(s) 1234) exited unexpectedly",
    ],
)
@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("traceback : Signal 9 (SIGKILL) received by PID 3", "process-killed"),
        ("there is an exception of fftsplus aivector error", "npu-vector-exception"),
        ("python: a.cpp:12: int at(long): Assertion `i < n' failed.", "native-assert"),
    ],
)
def test_peer_that_is_gone_follows_from_what_ended_it(
    tmp_path: Path, gone: str, line: str, fault: str
) -> None:
    assert named(explain_text(tmp_path, log=f"{gone}\n{line}\n"))[0] == fault


def test_card_that_suspects_another_one_is_not_the_first(tmp_path: Path) -> None:
    log = "SUSPECT REMOTE ERROR, error code is 507057\nan exception of fftsplus aivector error\n"
    assert named(explain_text(tmp_path, log=log)) == ["npu-vector-exception"]


@pytest.mark.parametrize(
    "line",
    [
        "SystemExit: 1",
        "asyncio.exceptions.CancelledError",
        "RuntimeError: Process ApiServer_0 (PID: 26419) died with exit code 1",
        "RuntimeError: Initialization failed. Please see the error messages above.",
    ],
)
def test_exception_about_another_process_is_not_the_first(tmp_path: Path, line: str) -> None:
    assert named(explain_text(tmp_path, log=f"{line}\nOddError: no\n"))[0] == "python-exception"


def test_handler_of_deepspeed_does_not_mean_that_a_process_was_killed(tmp_path: Path) -> None:
    log = "[ERROR] [launch.py:321:sigkill_handler] ['python', 'a.py'] exits with return code = 1\n"
    assert named(explain_text(tmp_path, log=log)) == ["process-ended"]


def test_connection_that_is_tried_again_is_not_the_first(tmp_path: Path) -> None:
    line = "n1:1:1 [0] NCCL INFO Call to connect returned Connection refused, retrying\n"
    assert named(explain_text(tmp_path, log=line + "ValueError: no\n"))[0] == "python-exception"
    assert named(explain_text(tmp_path, log=line)) == ["nccl-connection-refused"]


def test_fault_long_before_is_the_first_without_training_after_it(tmp_path: Path) -> None:
    log = "[rank1]: OddError: no\n" + "waiting\n" * 600 + "hccl fftsplus task timeout occurred\n"
    assert named(explain_text(tmp_path, log=log))[0] == "python-exception"
    trained = log.replace("waiting", "step 1 loss 2.3")
    assert named(explain_text(tmp_path, log=trained))[0] == "hccl-task-timeout"
