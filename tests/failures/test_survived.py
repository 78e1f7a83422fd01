"""Errors that a program survived or only mentioned, next to the one that ended it."""

from pathlib import Path

import pytest

from tests.failures.explaining import explain_text, named

CAUGHT = "TypeError: start() takes from 3 to 7 positional arguments but 8 were given\n"
GOES_ON = "[2024-12-06 10:37:49,583] [INFO] [accelerator.py:219:get] Setting it to npu\n"
ENDED = """\
Traceback (most recent call last):
  File "/job/train.py", line 37, in <module>
    from vllm import AsyncEngineArgs
ImportError: cannot import name 'AsyncEngineArgs' from 'vllm' (unknown location)
"""


def test_exception_after_which_the_process_went_on_was_survived(tmp_path: Path) -> None:
    log = CAUGHT + GOES_ON + ENDED
    assert named(explain_text(tmp_path, log=log)) == ["package-shadowed", "api-changed"]


def test_exception_is_first_if_nothing_shows_that_the_process_went_on(tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log=CAUGHT + ENDED))[0] == "api-changed"


@pytest.mark.parametrize(
    "line",
    [
        "[INFO] shutting down the writer\n",
        "INFO: 3 workers failed\n",
    ],
)
def test_process_that_only_logs_its_end_did_not_continue(tmp_path: Path, line: str) -> None:
    assert named(explain_text(tmp_path, log=CAUGHT + line + ENDED))[0] == "api-changed"


@pytest.mark.parametrize(
    "other",
    [
        "[rank1]: ValueError: no\n",
        "Sending process 188119 closing signal SIGTERM\n",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n",
    ],
)
def test_lines_of_another_process_do_not_show_that_one_went_on(tmp_path: Path, other: str) -> None:
    log = CAUGHT + GOES_ON + other + ENDED
    assert named(explain_text(tmp_path, log=log))[0] == "api-changed"


def test_lines_of_the_same_rank_show_that_it_went_on(tmp_path: Path) -> None:
    log = "".join(f"[rank0]: {line}" for line in (CAUGHT + GOES_ON + ENDED).splitlines(True))
    log += "[rank1]: ConnectionError: no\n"
    assert named(explain_text(tmp_path, log=log))[0] == "package-shadowed"


def test_exception_that_another_one_left_behind_is_not_the_first(tmp_path: Path) -> None:
    log = f"""\
{CAUGHT}{GOES_ON}Traceback (most recent call last):
  File "/job/train.py", line 20, in <module>
    model.start()
AttributeError: 'NoneType' object has no attribute 'start'
"""
    assert named(explain_text(tmp_path, log=log))[0] == "api-changed"


def test_untraced_exception_does_not_outrank_an_earlier_one(tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log=CAUGHT + GOES_ON + "KeyError: 'a'\n"))[0] == (
        "api-changed"
    )


FILLING = "2020-11-27 11:26:50.49: I dataset_op.cc:145] Filling up shuffle buffer: 6 of 10\n"
DEVICE = "[ERROR] RUNTIME(62299)model execute error, [the model stream execute failed]\n"
STEPS = "Number of steps/epoch 0, number of epochs 6\n"
DIVISION = "ZeroDivisionError: integer division or modulo by zero\n"
DONE = "2025-04-01 00:26:01,706 - root - INFO - Training completed\n"
ABORT = "Fatal Python error: Aborted\n"


@pytest.mark.parametrize(
    ("told", "failed", "first"),
    [
        (FILLING, DEVICE, "tf-shuffle-filling"),
        (STEPS, DIVISION, "data-set-empty"),
        (DONE, ABORT, "failed-after-training"),
        (DONE, "Segmentation fault (core dumped)\n", "failed-after-training"),
    ],
)
def test_what_a_program_logged_is_the_cause_if_all_follows_from_it(
    tmp_path: Path, told: str, failed: str, first: str
) -> None:
    assert named(explain_text(tmp_path, log=told + failed)) == [first]


@pytest.mark.parametrize(
    ("told", "failed", "first"),
    [
        (FILLING, DEVICE, "npu-model-failed"),
        (DONE, ABORT, "process-aborted"),
    ],
)
@pytest.mark.parametrize("between", ["before", "trained", "cause"])
def test_what_a_program_logged_is_not_the_cause_otherwise(
    tmp_path: Path, told: str, failed: str, first: str, between: str
) -> None:
    oom = "NPU out of memory. Tried to allocate 2.00 GiB\n"
    log = {
        "before": failed + told,
        "trained": told + "step 10 loss 2.31\n" + failed,
        "cause": told + f"RuntimeError: {oom}" + failed,
    }[between]
    expected = "npu-out-of-memory" if between == "cause" else first
    assert named(explain_text(tmp_path, log=log))[0] == expected


def test_empty_data_set_is_not_the_cause_of_another_failure(tmp_path: Path) -> None:
    log = STEPS + "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n"
    assert named(explain_text(tmp_path, log=log)) == ["npu-out-of-memory", "data-set-empty"]


def test_state_that_is_over_is_not_the_cause(tmp_path: Path) -> None:
    log = FILLING + "2020-11-27 11:26:52: I x.cc:1] Shuffle buffer filled.\n" + DEVICE
    assert named(explain_text(tmp_path, log=log)) == ["npu-model-failed"]


def test_training_that_ended_well_needs_no_explanation(tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log=FILLING + DONE)) == []


EVENTS = """\
  Warning  FailedScheduling          11m  scheduler  0/4 nodes are available
  Normal   Scheduled                 9m   scheduler  Successfully assigned a/b to n1
  Warning  UnexpectedAdmissionError  3m   kubelet  Allocate failed due to no healthy devices present
  Warning  FailedMount               3m   kubelet  MountVolume.SetUp failed for volume "x"
"""


def test_pod_that_was_scheduled_at_last_did_not_fail_for_want_of_a_node(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log=EVENTS)
    assert named(explanation) == ["k8s-card-unhealthy", "k8s-unschedulable"]


def test_pod_that_is_not_scheduled_again_lacks_a_node(tmp_path: Path) -> None:
    log = "".join(reversed(EVENTS.splitlines(True)[:2]))
    assert named(explain_text(tmp_path, log=log)) == ["k8s-unschedulable"]


ABORTED = "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.\n"
KILLING = "Killing subprocess 7949\n"
CANCELLED = "slurmstepd: error: *** STEP 18.0 ON n1 CANCELLED AT 2021-05-23T08:45:57{} ***\n"


@pytest.mark.parametrize("is_first_in_the_log", [True, False])
@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        (CANCELLED.format(" DUE TO TIME LIMIT"), "out-of-time"),
        (CANCELLED.format(""), "job-cancelled"),
        (CANCELLED.format(" DUE TO PREEMPTION"), "node-failed"),
    ],
)
def test_reason_outranks_what_announces_the_end(
    tmp_path: Path, reason: str, fault: str, is_first_in_the_log: bool
) -> None:
    announced = ABORTED + KILLING + "Sending process 12 closing signal SIGTERM\n"
    log = reason + announced if is_first_in_the_log else announced + reason
    assert named(explain_text(tmp_path, log=log)) == [fault]


@pytest.mark.parametrize("is_first_in_the_log", [True, False])
def test_cancellation_without_a_reason_gives_way_to_one_with_it(
    tmp_path: Path, is_first_in_the_log: bool
) -> None:
    lines = [CANCELLED.format(""), CANCELLED.format(" DUE TO TIME LIMIT")]
    log = "".join(lines if is_first_in_the_log else reversed(lines))
    assert named(explain_text(tmp_path, log=log)) == ["out-of-time"]


@pytest.mark.parametrize("run", ["srun", "yhrun"])
def test_task_that_failed_outranks_what_a_step_announces(tmp_path: Path, run: str) -> None:
    failed = f"{run}: error: n2: task 5: Exited with exit code 17\n"
    log = f"{run}: Job step aborted: Waiting up to 32 seconds\n" + failed
    assert named(explain_text(tmp_path, log=log)) == ["slurm-task-failed"]


def test_inner_error_gives_way_to_what_cann_says_below_it(tmp_path: Path) -> None:
    log = """\
RuntimeError: The Inner error is reported as above. The process exits for this inner error.
rtMemcpyAsync execution failed, reason=aicore timeout[FUNC:FuncErrorReason]
"""
    assert named(explain_text(tmp_path, log=log)) == ["npu-aicore-timeout"]


def test_job_of_which_a_task_had_failed_was_not_cancelled_from_outside(tmp_path: Path) -> None:
    failed = "srun: error: n2: task 5: Exited with exit code 255\n"
    log = failed + ABORTED + CANCELLED.format("")
    assert named(explain_text(tmp_path, log=log)) == ["slurm-task-failed"]


def test_cancelled_job_comes_before_what_the_program_survived(tmp_path: Path) -> None:
    log = "train.py:3: UserWarning: No module named 'apex', falling back\n" + CANCELLED.format("")
    assert named(explain_text(tmp_path, log=log)) == ["job-cancelled", "module-missing"]


def test_time_limit_does_not_outrank_a_failure(tmp_path: Path) -> None:
    log = "ValueError: no\n" + CANCELLED.format(" DUE TO TIME LIMIT")
    assert named(explain_text(tmp_path, log=log)) == ["python-exception"]


@pytest.mark.parametrize(
    ("follows", "first"),
    [
        ("libcann_kb.so: cannot open shared object file: No such file", "library-missing"),
        ("version `GLIBCXX_3.4.29' not found", "glibc-too-old"),
    ],
)
@pytest.mark.parametrize("is_first_in_the_log", [True, False])
def test_device_is_not_supported_because_its_library_was_not_loaded(
    tmp_path: Path, follows: str, first: str, is_first_in_the_log: bool
) -> None:
    lines = ["RuntimeError: Unsupported device target Ascend.\n"]
    lines.insert(0 if is_first_in_the_log else 1, f"Load dynamic library: a.so failed. {follows}\n")
    assert named(explain_text(tmp_path, log="".join(lines))) == [first]


def test_error_of_cann_that_is_printed_as_a_warning_was_not_survived(tmp_path: Path) -> None:
    log = """\
[rank0]:[W424 03:40:28.559765110 compiler_depend.ts:432] Warning: EI0003: [PID: 143] In [Check]
ValueError: no
"""
    assert named(explain_text(tmp_path, log=log))[0] == "hccl-operator-argument"


MENTIONED = "Could not import apex: No module named 'apex'\n"


@pytest.mark.parametrize(
    ("ended", "fault"),
    [
        ("GpuLaunchKernel(a, b) status: Internal: out of memory\n", "cuda-out-of-memory"),
        (CANCELLED.format(""), "job-cancelled"),
        (CANCELLED.format(" DUE TO TIME LIMIT"), "out-of-time"),
        (DONE + ABORT, "failed-after-training"),
    ],
)
def test_package_that_was_only_mentioned_as_missing_ended_nothing(
    tmp_path: Path, ended: str, fault: str
) -> None:
    assert named(explain_text(tmp_path, log=MENTIONED + ended))[0] == fault
