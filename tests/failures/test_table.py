"""The fault table: its entries are whole, and each one's line is read as what it is."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from jumar.failures import Fault, fault_table
from jumar.failures.table import ROLES, mark_of
from tests.failures.explaining import explain_text, named

FAULTS = list(fault_table().faults.values())
ENTRIES = [
    entry
    for file in sorted((files("jumar.failures") / "faults").iterdir(), key=lambda each: each.name)
    for entry in json.loads(file.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_each_entrys_sample_line_is_attributed_to_it_first(fault: Fault, tmp_path: Path) -> None:
    assert named(explain_text(tmp_path, log=f"{fault.example}\n"))[0] == fault.id


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("OSError: [Errno 98] 地址已在使用", "port-in-use"),
        ("OSError: [Errno 28] Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "disk-full"),
        ("OSError: [Errno 122] Quota atteint", "disk-full"),
        ("PermissionError: [Errno 13] Keine Berechtigung", "permission"),
        ("PermissionError: [Errno 1] Vorgang nicht zulässig", "permission"),
        ("OSError: [Errno 12] Kann Speicher nicht zuweisen", "host-allocation"),
        ("BlockingIOError: [Errno 11] 资源暂时不可用", "threads-used-up"),
        ("OSError: [Errno 30] Le système de fichiers est en lecture seule", "file-system"),
        ("OSError: [Errno 5] 输入/输出错误", "file-system"),
        ("OSError: [Errno 116] Veraltetes Dateihandle", "file-system"),
        ("OSError: [Errno 107] x: '/mnt/data'", "file-system"),
        ("  what():  Transport endpoint is not connected", "connection-broken"),
        ("ConnectionRefusedError: [Errno 111] 拒绝连接", "connection-broken"),
        ("OSError: [Errno 104] Connexion ré-initialisée", "connection-broken"),
        ("OSError: [Errno 101] 网络不可达", "connection-broken"),
        ("OSError: [Errno 113] Keine Route zum Zielrechner", "connection-broken"),
    ],
)
def test_errors_of_the_system_are_known_by_number_in_any_language(line: str, expected: str) -> None:
    fault = fault_table().fault_in(line)
    assert fault is not None
    assert fault.id == expected


@pytest.mark.parametrize(
    ("line", "is_hung_up"),
    [
        ("Sending process 3 closing signal SIGHUP", True),
        ("Received 1 death signal, shutting down workers", True),
        ("Received Signals.SIGHUP death signal, shutting down workers", True),
        ("Sending process 3 closing signal SIGTERM", False),
        ("Received 15 death signal, shutting down workers", False),
        ("Received Signals.SIGTERM death signal, shutting down workers", False),
        ("api.SignalException: Process 12 got signal: 15", False),
        ("traceback : Signal 11 (SIGSEGV) received by PID 5", False),
        ("traceback : Signal 15 (SIGTERM) received by PID 5", False),
    ],
)
def test_only_a_hang_up_is_a_closed_terminal(line: str, is_hung_up: bool) -> None:
    fault = fault_table().fault_in(line)
    assert (fault is not None and fault.id == "launcher-hung-up") == is_hung_up


def test_at_least_180_entries_have_a_line_from_a_real_program() -> None:
    """`message` marks lines that were put together from a program's text; `run` was run here."""
    kinds = [entry.get("example_is", "log") for entry in ENTRIES]
    assert set(kinds) == {"log", "run", "message"}
    assert len(kinds) - kinds.count("message") >= 180


def test_every_entry_is_named_once() -> None:
    ids = [entry["id"] for entry in ENTRIES]
    assert len(ids) == len(set(ids)) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_entries_have_cause_and_advice_in_both_languages(fault: Fault) -> None:
    for text in (fault.what, fault.first):
        assert text.en.endswith((".", "?"))
        assert text.zh.endswith(("。", "？"))
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text.zh)
    assert fault.role in ROLES
    assert fault.sources
    assert all(source.startswith("https://") for source in fault.sources)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_causes_of_a_fault_are_in_the_table_and_never_itself(fault: Fault) -> None:
    assert fault.follows <= set(fault_table().faults) - {fault.id}


def test_no_two_entries_share_a_code() -> None:
    codes = [code for fault in FAULTS for code in fault.codes]
    assert len(codes) == len(set(codes))


def test_sieve_of_many_lines_finds_what_each_line_has_of_all_marks() -> None:
    """The sieve drops marks that no line of a text can have, by a word within the mark."""
    table = fault_table()
    lines = [fault.example for fault in table.faults.values()]
    lines += [f"{line[0].upper()}{line[1:]}".replace(" ", "  ") for line in lines]
    sieve = table.sieve("\n".join(lines))
    for line in lines:
        expected = {
            fault.id
            for fault in table.faults.values()
            if any(mark.is_in(line.lower()) for mark in fault.marks)
        }
        found = {
            fault.id
            for _, marks in sieve.marks
            for mark, fault in marks
            if mark.is_in(line.lower())
        }
        assert found == expected
        named = (table.fault_in(line), sieve.fault_in(line))
        assert named[0] is named[1]


@pytest.mark.parametrize(
    ("mark", "word"),
    [
        ("Cannot find bin of op", "find"),
        ("CUDA_KERNEL_ASSERT", ""),
        ("file not found: archive/", "archive"),
        ("[InitGroupStage][RanktableCheck]", "initgroupstage"),
        ("timed out … while trying to connect", "trying"),
    ],
)
def test_word_of_a_mark_is_whole_in_every_line_with_it(mark: str, word: str) -> None:
    assert mark_of(mark).word == word


def test_marks_match_only_in_order() -> None:
    mark = mark_of("Call to … failed")
    assert mark.is_in("call to recv from a failed : broken pipe")
    assert not mark.is_in("failed before a call to recv")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("step 507018 of 900000 done, error 0.1", None),
        ("tensor of 507018 elements; no error", None),
        ("error code is 507018", "npu-aicpu-exception"),
        ("rtStreamSynchronize failed, ret[507018]", "npu-aicpu-exception"),
        ("retcode: 5070180", None),
        ("ErrCode=507018, desc=[aicpu exception]", "npu-aicpu-exception"),
        ("E0608 19:04:45.368000 a glog line", None),
        ("xEI0002: no code", None),
    ],
)
def test_number_is_a_code_only_if_the_line_says_so(line: str, fault: str | None) -> None:
    matched = fault_table().fault_in(line)
    assert (matched.id if matched else None) == fault
