import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.porting.edits import Edit, FileReport, Finding, Kept, Place, Text, TreeReport
from jumar.porting.report.json_report import dumps, from_json, read_report, to_json
from jumar.porting.report.markdown import markdown
from jumar.porting.report.page import render
from jumar.porting.report.saving import save_report
from tests.porting.report.reports import hostile_report, tree_report

WORDS = st.text(max_size=12)
TEXTS = st.builds(Text, en=WORDS, zh=WORDS)
PLACES = st.builds(Place, line=st.integers(1), column=st.integers(1))
CONFIDENCES = st.sampled_from(["certain", "likely", "unsure"])
EDITS = st.builds(
    Edit,
    rule=WORDS,
    place=PLACES,
    place_after=st.none() | PLACES,
    before=WORDS,
    after=WORDS,
    reason=TEXTS,
    confidence=CONFIDENCES,
    source=WORDS,
)
FINDINGS = st.builds(
    Finding,
    rule=WORDS,
    place=PLACES,
    place_after=st.none() | PLACES,
    code=WORDS,
    reason=TEXTS,
    todo=TEXTS,
    severity=st.sampled_from(["blocking", "accuracy", "speed", "look"]),
    confidence=CONFIDENCES,
    source=WORDS,
)
KEPT = st.builds(Kept, rule=WORDS, place=PLACES, code=WORDS, reason=TEXTS)
FILES = st.builds(
    FileReport,
    path=WORDS,
    status=st.sampled_from(["ported", "unchanged", "copied", "unreadable"]),
    edits=st.lists(EDITS, max_size=2).map(tuple),
    findings=st.lists(FINDINGS, max_size=2).map(tuple),
    kept=st.lists(KEPT, max_size=2).map(tuple),
    note=st.none() | TEXTS,
    before=WORDS,
    after=WORDS,
)
REPORTS = st.builds(
    TreeReport,
    root=WORDS,
    files=st.lists(FILES, max_size=3).map(tuple),
    options=st.lists(WORDS, max_size=3).map(tuple),
    added=st.lists(WORDS, max_size=3).map(tuple),
    version=WORDS,
)


@given(report=REPORTS)
@settings(max_examples=60)
def test_report_round_trips(report: TreeReport) -> None:
    assert from_json(json.loads(dumps(report))) == report


@pytest.mark.parametrize("report", [tree_report(), hostile_report()], ids=["small", "hostile"])
def test_report_round_trips_through_a_file(report: TreeReport, tmp_path: Path) -> None:
    save_report(report, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == report


def test_undecodable_file_name_survives_the_round_trip(tmp_path: Path) -> None:
    report = TreeReport(root=".", files=(FileReport(path="caf\udce9.py", status="copied"),))
    save_report(report, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == report


def test_sentences_are_kept_in_both_languages_and_chinese_stays_readable() -> None:
    text = dumps(tree_report())
    (file,) = [file for file in json.loads(text)["files"] if file["status"] == "ported"]
    assert file["findings"][1]["todo"] == {
        "en": "Set iterations_per_loop.",
        "zh": "设置 iterations_per_loop。",
    }
    assert "设置 iterations_per_loop" in text


def test_totals_match_the_files() -> None:
    totals = to_json(tree_report())["totals"]
    assert totals["files"] == {"ported": 1, "unchanged": 1, "copied": 1, "unreadable": 1}
    assert sum(totals["edits"].values()) == 4
    assert totals["findings"] == {"feed-dict": 1, "queue-input": 1}
    assert totals["kept"] == {"dropout": 1}


def broken(path: tuple[str | int, ...], value: object) -> Any:
    """The small report with one field replaced, or removed if the value is `...`."""
    report = json.loads(dumps(tree_report()))
    at = report
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return report


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("format",), "tensorboard", "format"),
        (("schema",), 99, "schema 99"),
        (("schema",), True, "schema"),
        (("schema",), 10**30, "schema"),
        (("root",), None, "root"),
        (("options",), "--devices 8", "options"),
        (("options",), [8], r"options\[0\]"),
        (("files",), {"0": {}}, "files"),
        (("files", 0), "train.py", r"files\[0\]"),
        (("files", 0, "path"), ..., r"files\[0\]\.path is missing"),
        (("files", 0, "status"), "great", "ported, unchanged"),
        (("files", 0, "status"), ["ported"], "status"),
        (("files", 1, "note"), "why", r"files\[1\]\.note"),
        (("files", 3, "edits", 0, "place", "line"), 0, "line"),
        (("files", 3, "edits", 0, "place", "line"), True, "line"),
        (("files", 3, "edits", 0, "place", "column"), 1.5, "column"),
        (("files", 3, "edits", 0, "place"), None, "place"),
        (("files", 3, "edits", 0, "confidence"), "sure", "certain, likely, unsure"),
        (("files", 3, "findings", 0, "severity"), "bad", "blocking"),
        (("files", 3, "findings", 0, "reason", "zh"), 7, r"reason\.zh"),
        (("files", 3, "kept", 0, "code"), {}, "code"),
    ],
)
def test_invalid_report_is_refused_naming_the_field(
    path: tuple[str | int, ...], value: object, named: str
) -> None:
    with pytest.raises(UserError, match=named):
        from_json(broken(path, value), where="report.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(data=st.data(), value=JSON)
@settings(max_examples=50)
def test_any_field_value_gives_a_report_or_a_user_error(data: st.DataObject, value: object) -> None:
    report = json.loads(dumps(tree_report()))
    at: Any = report
    key: Any = None
    for depth in reversed(range(data.draw(st.integers(1, 6)))):
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = data.draw(st.sampled_from(keys)) if keys else None
        if key is None or not isinstance(at[key], dict | list) or not depth:
            break
        at = at[key]
    if key is not None:
        at[key] = value
    try:
        read = from_json(report)
    except UserError:
        return
    assert markdown(read)
    assert render(read)


def test_fields_of_later_versions_are_ignored() -> None:
    assert from_json(broken(("files", 0, "later"), [1])) == tree_report()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 200_000,
        b"\xff\xfe",
        b"[]",
        b'"text"',
        b"null",
        b'{"format": "jumar port report", "schema": ' + b"9" * 5000 + b"}",
    ],
    ids=["empty", "cut off", "deep", "no UTF-8", "list", "text", "null", "absurd number"],
)
def test_file_that_is_not_a_report_is_an_error_naming_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"some\.json"):
        read_report(path)


def test_missing_file_is_an_error_naming_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.json"):
        read_report(tmp_path / "none.json")
