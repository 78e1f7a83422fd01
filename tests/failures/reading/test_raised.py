"""Exceptions and messages of CANN that the table does not know are quoted, not explained."""

from pathlib import Path

import pytest

from jumar.failures.reading.raised import cann_message_in, is_exception, saying
from jumar.failures.wording import lines_of
from tests.failures.explaining import explain_text, named


@pytest.mark.parametrize(
    ("text", "in_traceback", "expected"),
    [
        ("ValueError: no", False, True),
        ("foo.bar.StrangeError: no", False, True),
        ("AssertionError", False, True),
        ("queue.Empty", False, True),
        ("torch._C._LinAlgError: linalg.cholesky: (Batch element 0): no", False, True),
        ("_LinAlgError: linalg.cholesky: no", False, True),
        ("_my_Error: no", False, False),
        ("subprocess.TimeoutExpired: Command 'x' timed out", False, True),
        ("An Error: is told of", False, False),
        ("Errors: 0", False, False),
        ("hydra.errors.Missing: no such entry", False, False),
        ("hydra.errors.Missing: no such entry", True, True),
        ("The loss is 3", True, False),
        ("IndexError: Caught IndexError in DataLoader worker process 25.", True, False),
        ("RuntimeError: Caught RuntimeError in replica 1 on device 1.", False, False),
        ("IndexError: list index out of range", True, True),
        ("tensorflow.errors_impl.UnknownError: 2 root error(s) found.", True, False),
        ("  (0) Unknown:  error: unpack requires a buffer of 4 bytes", False, True),
        ("  (1) Unknown:  error: unpack requires a buffer of 4 bytes", False, False),
        ("  (0) is the first number: 4", False, False),
    ],
)
def test_exception_is_recognised_by_its_format(
    text: str, in_traceback: bool, expected: bool
) -> None:
    assert is_exception(text, in_traceback=in_traceback) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("E69999: [PID: 1] 2025-07-08-19:23:04.799.485 op[X], only[FUNC:A]", "op[X], only"),
        ("EZ9999[PID: 12] 2025-07-08-19:23:04.799.485 (EZ9999):  op[X] fails", "op[X] fails"),
        ("EZ9999: Parse dynamic kernel config fail.", "Parse dynamic kernel config fail."),
        (
            "[PID: 4] 2026-04-10-17:11:48.281.315 AclNN_Parameter_Error(EZ1001): Too wide.",
            "Too wide.",
        ),
        ("EZ9999  [InferShape] Only a(64)[FUNC:InferShape]", "[InferShape] Only a(64)"),
        ("EZ9999  Only a(64)", ""),
        ("EZ9999: Inner Error!", ""),
        ("EZ9999", ""),
        ("xEZ9999: no code", ""),
    ],
)
def test_cann_message_follows_its_code(text: str, message: str) -> None:
    assert cann_message_in(text) == message


def test_exception_without_a_message_is_quoted_with_its_source_line() -> None:
    assert saying("AssertionError", "    assert a == b") == "AssertionError: assert a == b"
    assert saying("AssertionError: a", "    assert a == b") == "AssertionError: a"
    assert saying("AssertionError", "step 3") == "AssertionError"


def test_cann_message_takes_precedence_over_its_code(tmp_path: Path) -> None:
    log = (
        "RuntimeError: call aclnnX failed, detail:EZ9999: Inner Error!\n"
        "EZ9999: [PID: 3] 2025-07-08-19:23:04.799.485 op[X], only false is there[FUNC:A]\n"
    )
    explanation = explain_text(tmp_path, log=log)
    assert named(explanation) == ["cann-message"]
    assert "  it says: op[X], only false is there" in list(lines_of(explanation, "en"))
    assert "  原文：op[X], only false is there" in list(lines_of(explanation, "zh"))


@pytest.mark.parametrize(
    "line",
    [
        "(WorkerDict pid=2) E89999: [PID: 2] 2025-11-24-02:53:50.456.545 TND is too much[FUNC:A]",
        "EK7777: TND is too much",
        "[PID: 2] 2025-11-24-02:53:50.456.545 Attention_Limit(EZ7777): TND is too much[FUNC:A]",
    ],
)
def test_cann_message_with_an_unknown_code_needs_no_word_of_failure(
    tmp_path: Path, line: str
) -> None:
    explanation = explain_text(tmp_path, log=f"step 1\n{line}\nstep 2\n")
    assert named(explanation) == ["cann-message"]
    assert "  it says: TND is too much" in list(lines_of(explanation, "en"))


def test_failing_loader_worker_is_quoted_with_its_own_exception_and_place(tmp_path: Path) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 9, in <module>\n'
        "    raise exception\n"
        "StrangeError: Caught StrangeError in DataLoader worker process 2.\n"
        "Original Traceback (most recent call last):\n"
        '  File "dataset.py", line 35, in __getitem__\n'
        "    return parts[1]\n"
        "StrangeError: field 1 of 1\n"
    )
    lines = list(lines_of(explain_text(tmp_path, log=log), "en"))
    assert "  it says: StrangeError: field 1 of 1" in lines
    assert any("dataset.py:35" in line for line in lines)


def test_call_failing_with_an_unknown_code_is_not_a_cause_next_to_a_cann_message(
    tmp_path: Path,
) -> None:
    log = (
        "RuntimeError: InnerRun:a.cpp:2 OPS function error: X, error code is 500999\n"
        "E19999: [PID: 3] 2025-07-08-19:23:04.799.485 Shape of X is wrong[FUNC:A]\n"
    )
    assert named(explain_text(tmp_path, log=log)) == ["cann-message"]
    assert named(explain_text(tmp_path, log=log.splitlines()[0])) == ["npu-function-failed"]


def test_any_name_after_traceback_frames_of_the_same_rank_is_an_exception(tmp_path: Path) -> None:
    log = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/job/train.py", line 7, in <module>\n'
        "[rank1]:     read(errors)\n"
        "[rank1]: omega.errors.Missing: no entry failed\n"
    )
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert (first.fault.id, first.rank, first.frame) == ("python-exception", 1, "/job/train.py:7")
    assert first.says == "omega.errors.Missing: no entry failed"


def test_causes_explained_by_the_table_are_not_quoted_again(tmp_path: Path) -> None:
    explanation = explain_text(
        tmp_path, log="RuntimeError: CUDA out of memory. Tried to allocate\n"
    )
    assert explanation.candidates[0].first.says == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "[ERROR] FE(3536113,python):2023-07-14-20:35:57.670.101 [tbe_op_store_adapter.cc:947]"
            "3774464 ParallelCompileOp: process fail task failed",
            "ParallelCompileOp: process fail task failed",
        ),
        (
            "[ERROR] ME(130371:281473296949264,MainProcess):2024-12-26-14:22:26.839.923 "
            "[mindspore/parallel/cluster/process_entity/_api.py:268] Worker exits.",
            "Worker exits.",
        ),
        (
            "[2025-12-15 15:19:22.681+08:00] [38] [452] [server] [ERROR] [http_server.cpp:163] : "
            "[MIE04E02041D] [endpoint] Bad certificate",
            "[MIE04E02041D] [endpoint] Bad certificate",
        ),
        (
            "2017-11-15 01:21:03.972724: E tensorflow/core/common_runtime/direct_session.cc:138] "
            "Bad graph",
            "Bad graph",
        ),
        (
            "E1111 20:20:54.172290  207019 pjrt_stream_executor_client.cc:3077] Execution of "
            "replica 0 failed: INVALID_ARGUMENT: All buffers must have the same element type",
            "Execution of replica 0 failed: INVALID_ARGUMENT: All buffers must have the same "
            "element type",
        ),
        (
            "[1641998540.196336] [node1:31658:0]       ib_device.c:1319 UCX  ERROR   "
            "ibv_create_ah(dlid=49152) on rocep33s0f1 failed: Invalid argument",
            "ibv_create_ah(dlid=49152) on rocep33s0f1 failed: Invalid argument",
        ),
    ],
)
def test_unknown_error_of_a_native_log_is_quoted_if_nothing_better_is_there(
    line: str, says: str, tmp_path: Path
) -> None:
    explanation = explain_text(tmp_path, log=f"{line}\n")
    assert named(explanation) == ["logged-error"]
    assert explanation.candidates[0].first.says == says
    assert named(explain_text(tmp_path, log=f"{line}\nSegmentation fault\n")) == [
        "process-segfault"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "[WARNING] ME(130371:281,MainProcess):2024-12-26-14:22:26.839.923 [a.py:268] Worker exits.",
        "[ERROR] ME(130371:281,MainProcess):2024-12-26-14:22:26.839.923 [a.py:268] ",
        "2017-11-15 01:21:03.972724: W tensorflow/core/direct_session.cc:138] Bad error",
        "[ERROR] some error",
        "W1111 20:20:54.172290  207019 client.cc:3077] Execution failed, will be repeated",
        "[1641998540.196336] [node1:31658:0]       ib_device.c:1319 UCX  WARN   a device failed",
    ],
)
def test_other_lines_of_native_logs_are_not_quoted(line: str, tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log=f"{line}\n")) == []


def test_first_root_error_of_a_graph_is_quoted(tmp_path: Path) -> None:
    log = """\
tensorflow.python.framework.errors_impl.UnknownError: 2 root error(s) found.
  (0) Unknown:  error: unpack requires a buffer of 4 bytes
  (1) Unknown:  error: unpack requires a buffer of 8 bytes
"""
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert first.says == "(0) Unknown:  error: unpack requires a buffer of 4 bytes"


def test_code_without_a_message_is_not_quoted(tmp_path: Path) -> None:
    log = """\
[Error]: An internal error occurs in the task scheduler module on the device.
EE9999[PID: 3124257] 2026-09-13-11:22:04.971.538 (EE9999):
rtEventQueryStatus execution failed, reason=tsfw unknown error
"""
    assert named(explain_text(tmp_path, log=log))[0] == "npu-scheduler-error"


def test_condition_of_a_native_check_is_quoted(tmp_path: Path) -> None:
    line = "python3: a.cu:4: void f(Args): Assertion 'args.p != nullptr' failed."
    explanation = explain_text(tmp_path, log=f"{line}\n")
    assert named(explanation) == ["native-assert"]
    assert explanation.candidates[0].first.says == line
    assert named(explain_text(tmp_path, log=f"Segmentation fault\n{line}\n"))[0] == (
        "process-segfault"
    )
