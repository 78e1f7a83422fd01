"""What a program survived, or only told of, beside what ended it."""

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
def test_process_that_only_tells_of_its_end_did_not_go_on(tmp_path: Path, line: str) -> None:
    assert named(explain_text(tmp_path, log=CAUGHT + line + ENDED))[0] == "api-changed"


@pytest.mark.parametrize(
    "other",
    [
        "[rank1]: ValueError: no\n",
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
def test_what_a_program_told_of_is_the_cause_if_all_follows_from_it(
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
def test_what_a_program_told_of_is_not_the_cause_otherwise(
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


def test_error_of_cann_that_is_printed_as_a_warning_was_not_survived(tmp_path: Path) -> None:
    log = """\
[rank0]:[W424 03:40:28.559765110 compiler_depend.ts:432] Warning: EI0003: [PID: 143] In [Check]
ValueError: no
"""
    assert named(explain_text(tmp_path, log=log))[0] == "hccl-operator-argument"
