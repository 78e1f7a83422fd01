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


def test_marks_match_only_in_order() -> None:
    mark = mark_of("Call to … failed")
    assert mark.stands_in("call to recv from a failed : broken pipe")
    assert not mark.stands_in("failed before a call to recv")


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
