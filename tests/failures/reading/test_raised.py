"""Exceptions and messages of CANN that the table does not know are quoted, not explained."""

from pathlib import Path

import pytest

from jumar.failures.reading.raised import (
    cann_message_in,
    exception_in,
    fault_of_exit,
    is_error,
    is_error_line,
    is_exception,
    is_handled,
    kind_of,
    message_of,
    quotation,
)
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
        ("CANN error: EZ9903: [PID: 7] 2025-12-17-18:13:01.238.630 no Ascend910", "no Ascend910"),
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
    assert quotation("AssertionError", "    assert a == b") == "AssertionError: assert a == b"
    assert quotation("AssertionError: a", "    assert a == b") == "AssertionError: a"
    assert quotation("AssertionError", "step 3") == "AssertionError"


def test_cann_message_takes_precedence_over_its_code(tmp_path: Path) -> None:
    log = (
        "RuntimeError: call aclnnX failed, detail:EZ9999: Inner Error!\n"
        "EZ9999: [PID: 3] 2025-07-08-19:23:04.799.485 op[X], only false is there[FUNC:A]\n"
    )
    explanation = explain_text(tmp_path, log=log)
    assert named(explanation) == ["cann-message"]
    assert "  message: op[X], only false is there" in list(lines_of(explanation, "en"))
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
    assert "  message: TND is too much" in list(lines_of(explanation, "en"))


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
    assert "  message: StrangeError: field 1 of 1" in lines
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
        (
            "[2025-12-08 11:52:44.735471] [error] [69197] [operation_util.h:156] rankSize [16] is "
            "invalid",
            "rankSize [16] is invalid",
        ),
        (
            "E20251208 11:52:44.736321 69197 npu_word_embedding_impl.cpp:96] init node failed",
            "init node failed",
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
        "[2025-12-08 11:52:44.735471] [info] [69197] [operation_util.h:156] rankSize [16]",
        "I20251208 11:52:33.906306 69771 hf_model_loader.cpp:65] Loading a model",
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


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "    ",
        "> ",
        "- ",
        "│ ",
        "E   ",
        "10.0.0.1: ",
        "c000001: ",
        "pytorch-job-worker-0: ",
        "[0]:",
        "[stderr] ",
        "(pid=1234) ",
        "(VllmWorker TP1 pid=961) ERROR 09-07 01:11:09 [multiproc_executor.py:596] ",
        "t=114.62 | stderr | ",
        "train_1  | ",
        "2024-06-17T13:18:29.371622Z ERROR shard-manager: text_generation_launcher: ",
        "2024-01-01 10:00:00,123 - mmdet - ERROR - ",
        "2024-01-01 10:00:00.123 | ERROR    | main:run:95 - ",
        "2024-01-01 10:00:00,123 [ERROR] main: ",
        "[2024-04-18 10:46:28,089] [ERROR] [launch.py:321:main] ",
        "[2024-08-09 19:22:36 TP0] ",
        "ERROR:root:",
        "!!! Exception during processing !!! ",
        "E0106 03:23:01.677000 37645 site-packages/torch/_subclasses/fake_tensor.py:2721] [0/0] ",
        "    raise RuntimeError(message)",
    ],
)
def test_exception_is_found_behind_what_a_launcher_or_logger_wrote(prefix: str) -> None:
    assert exception_in(f"{prefix}RuntimeError: no mode") == "RuntimeError: no mode"


@pytest.mark.parametrize(
    ("line", "exception"),
    [
        ("│ ValueError: no mode                    │", "ValueError: no mode"),
        ("`ValueError: no mode`", "ValueError: no mode"),
        ('{"log":"ValueError: no mode\\n","stream":"stderr","time":"2"}', "ValueError: no mode"),
    ],
)
def test_exception_is_quoted_without_what_encloses_it(line: str, exception: str) -> None:
    assert exception_in(line) == exception


@pytest.mark.parametrize(
    "line",
    [
        "caught RuntimeError: no mode, trying again",
        "    except ValueError:",
        'raise ValueError("no mode")',
        "An Error: is told of",
        "IndexError: Caught IndexError in DataLoader worker process 25.",
        "# ValueError: no mode",
    ],
)
def test_exception_that_is_only_mentioned_does_not_count(line: str) -> None:
    assert exception_in(line) == ""


def test_exception_behind_an_unknown_prefix_is_quoted_with_its_place(tmp_path: Path) -> None:
    log = """\
c000001: Traceback (most recent call last):
c000001:   File "/job/train.py", line 7, in <module>
c000001:     raise RuntimeError("no mode")
c000001: RuntimeError: no mode
"""
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert (first.line, first.frame) == (4, "/job/train.py:7")
    assert first.says == "RuntimeError: no mode"


def test_exception_split_by_two_processes_is_put_together(tmp_path: Path) -> None:
    """Two processes that write at once: the name of the exception ends the line of the other."""
    log = """\
    run(args)raise ValueError("Undefined dataset {}.".format(name))ValueError
: Undefined dataset alpaca in dataset_info.json.
"""
    assert message_of(*reversed(log.splitlines())).startswith("ValueError: Undefined dataset")
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert first.says == "ValueError: Undefined dataset alpaca in dataset_info.json."
    assert message_of(": a colon", "no name above") == ""
    assert message_of("no colon", "ValueError") == ""


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Container rank 0 status failed, exit code -9", "process-killed"),
        ("worker 3 exited with status 137", "process-killed"),
        ("job step returned 139", "process-segfault"),
        ("task finished, exit code: 135", "process-bus-error"),
        ("rc=134", "process-aborted"),
        ("process 7 exited with code -4", "illegal-instruction"),
        ("exit code = 143", "process-ended"),
        ("failed (exitcode: -8) local_rank: 6 (pid: 3694) of binary: python", "process-arithmetic"),
        ("  exitcode  : -5 (pid: 52782)", "process-trap"),
        ("ForkPoolWorker-1 exitcode=-5", "process-trap"),
        ("  traceback : Signal 8 (SIGFPE) received by PID 52782", "process-arithmetic"),
        ("Command '['python']' died with <Signals.SIGFPE: 8>.", "process-arithmetic"),
        ("process 1 terminated with signal SIGTRAP", "process-trap"),
        ("['python', 'a.py'] exits with return code = -8", "process-arithmetic"),
        ("mpirun noticed that rank 1 exited on signal 8 (Floating", "process-arithmetic"),
        ("[n1:00921] Signal: Floating point exception (8)", "process-arithmetic"),
        ("TERMINATED WITH THE EXIT STRING: a (signal 8)", "process-arithmetic"),
        ("      Exit Code:    132", "illegal-instruction"),
        ("Training end with return code: 136", "process-arithmetic"),
        ("Main process exited, code=dumped, status=8/FPE", "process-arithmetic"),
        ("Main process exited, code=killed, status=31/SYS", "process-system-call"),
        ("finished with exit code 132 (interrupted by signal 4:SIGILL)", "illegal-instruction"),
        ("Command terminated by signal 13", "process-pipe"),
        ("task 0 killed by SIGUSR1", "process-user-signal"),
        ("process 811 received SIGXCPU", "process-cpu-time"),
        ("Exited with exit code 153.", "process-file-size"),
        ("worker 3 exited with code 129", "process-hung-up"),
        ('"terminated":{"exitCode":136,"reason":"Error"}', "process-arithmetic"),
        ("Worker process 811 exit with exception. Error code: -8.", "process-arithmetic"),
        ("Error code: -8.", ""),
        ("worker 3 exited with code 131", "process-quit"),
        ("worker 3 exited with code -14", "process-alarm"),
        ("registered a handler for SIGUSR1, signal 10", ""),
        ("Handling auto-requeue signal: 10", ""),
        ("returned 136 items", ""),
        ("returned -1", ""),
        ("the SIGFPE chapter", ""),
        ("worker 3 exited with status 1", ""),
        ("exit code 0", ""),
        ("error code 137", ""),
        ("returned 137.5 items", ""),
        ("loss 137", ""),
    ],
)
def test_exit_code_of_any_launcher_reveals_the_signal(line: str, fault: str) -> None:
    assert fault_of_exit(line) == fault


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("api.py:833] failed (exitcode: -8) local_rank: 6 (pid: 3)", "process-arithmetic"),
        ("  exitcode  : -5 (pid: 52782)", "process-trap"),
        ("ProcessExitedException: process 1 terminated with signal SIGTRAP", "process-trap"),
        ("mpirun noticed that process rank 1 exited on signal 8 (a).", "process-arithmetic"),
        ("  exitcode  : 1 (pid: 52782)", "process-ended"),
        ("  exitcode  : -15 (pid: 52782)", "process-terminated"),
    ],
)
def test_signal_outranks_what_says_only_that_a_process_ended(
    tmp_path: Path, line: str, fault: str
) -> None:
    assert named(explain_text(tmp_path, log=f"{line}\n")) == [fault]


def test_process_that_an_unknown_launcher_reports_as_killed(tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log="worker 3 exited with status 137\n")) == [
        "process-killed"
    ]


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("train.py: error: argument --lr: invalid value", True),
        ("Error: No such option: --epoch", True),
        ("错误：找不到数据", True),
        ("2024-01-01 10:00:00 | ERROR | no such data", True),
        ('time="2024-02-21T09:31:59Z" level=error msg="no such data"', True),
        ("no error: all is well", False),
        ("mean error 0.1", False),
        ("2024-01-01 10:00:00 | INFO | no such data", False),
    ],
)
def test_line_that_calls_itself_an_error(line: str, is_one: bool) -> None:
    assert is_error_line(line) == is_one


def test_line_that_calls_itself_an_error_is_quoted_if_nothing_better_is_there(
    tmp_path: Path,
) -> None:
    line = "train.py: error: argument --lr: not a rate\n"
    explanation = explain_text(tmp_path, log=line)
    assert named(explanation) == ["error-line"]
    assert explanation.candidates[0].first.says == line.strip()
    assert named(explain_text(tmp_path, log=line + "RuntimeError: no\n")) == ["python-exception"]


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("EZ9999: Inner Error!", True),
        ("  what():  out of memory", True),
        ("n1:12:12 [0] init.cc:28 NCCL WARN failed", True),
        ("failed to infer[FUNC:Infer][FILE:a.cc][LINE:119]", True),
        ("ImportError: no apex", True),
        ("Could not import apex, continuing", False),
    ],
)
def test_line_that_is_an_error_itself(line: str, is_one: bool) -> None:
    assert is_error(line) == is_one


def test_exception_of_a_look_up_is_handled() -> None:
    handled = "During handling of the above exception, another exception occurred:"
    assert is_handled(handled, "KeyError: 'a'")
    assert is_handled(f"[rank0]: {handled}", "AttributeError: no a")
    assert not is_handled(handled, "RuntimeError: file write failed")
    assert not is_handled("The above exception was the direct cause", "KeyError: 'a'")


@pytest.mark.parametrize(
    ("link", "first"),
    [
        ("During handling of the above exception, another exception occurred:", "OddError: no"),
        ("The above exception was the direct cause of the following exception:", "KeyError: 'a'"),
    ],
)
def test_exception_that_follows_a_look_up_is_first(tmp_path: Path, link: str, first: str) -> None:
    log = f"[rank0]: KeyError: 'a'\n[rank0]: \n[rank0]: {link}\n[rank0]: OddError: no\n"
    assert explain_text(tmp_path, log=log).candidates[0].first.says == first


def test_pipe_to_a_process_that_is_gone_is_not_the_cause(tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log="EOFError\nKeyError: 'a'\n"))[0] == "key-missing"
    assert named(explain_text(tmp_path, log="EOFError\n")) == ["exception-elsewhere"]


def test_entry_wider_than_the_words_of_a_line_shows_them(tmp_path: Path) -> None:
    line = "RuntimeError: The size of tensor a (2) must match the size of tensor b (3)"
    assert explain_text(tmp_path, log=line).candidates[0].first.says == line


ANNOUNCED = "RuntimeError: aclnnMmGetWorkspaceSize call failed, please check!\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("EZ1001: [PID: 11] 2025-01-05-01:37:17.462.248 The axes differ.[THREAD:12]", "The axes"),
        ("E       EZ1001: [PID: 11] 2025-01-05-01:37:17.462.248 The axes differ.", "The axes"),
        ("Ascend Error: AclNN_Parameter_Error(EZ1001): The axes differ.", "The axes"),
        ("OddError: The axes of a and b differ", "OddError: The axes"),
    ],
)
def test_exception_without_a_reason_gives_way_to_what_explains_it(
    tmp_path: Path, line: str, says: str
) -> None:
    explanation = explain_text(tmp_path, log=ANNOUNCED + f"{line}\n")
    assert explanation.candidates[0].first.says.startswith(says)


def test_exception_without_a_reason_is_quoted_if_nothing_explains_it(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log=ANNOUNCED)
    assert named(explanation) == ["exception-without-reason"]
    assert explanation.candidates[0].first.says == ANNOUNCED.strip()


@pytest.mark.parametrize(
    ("line", "is_without_reason"),
    [
        ("RuntimeError: Compile graph kernel_graph0 failed.", True),
        ("Exception: Job failed", True),
        ("ValueError: parsing 'a, b' of the list failed", False),
        ("RuntimeError: failed to read mode 3", False),
        ("OddError: no", False),
    ],
)
def test_exception_without_a_reason_says_only_that_something_failed(
    line: str, is_without_reason: bool
) -> None:
    assert (kind_of(line) == "exception-without-reason") == is_without_reason
