"""No content of a file makes a reader crash, hang, or use unlimited memory."""

import gzip
import json
import sqlite3
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.profiling import Profile, read
from jumar.profiling.reading import events
from jumar.profiling.reading.files import archives

_CSV = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
    'Input Shapes,aic_mac_ratio\n50,a,Conv2D,AI_CORE,1736408883704643.212\t,3.5,0,8,"""2,3;4""",'
    "0.5\n50,hcom_allReduce__1,N/A,HCCL,9.5,3.5,0,0,N/A,N/A\n"
)
_TRACE = json.dumps(
    {
        "schemaVersion": 1,
        "distributedInfo": {"rank": 1},
        "traceEvents": [
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 1.5, "dur": 99}
            | {"pid": 1, "tid": 2},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 2.25}
            | {"dur": 3, "args": {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}},
            {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 1, "tid": 2, "ts": 3}
            | {"dur": 1, "args": {"correlation": 7}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 2}
            | {"args": {"correlation": 7, "stream": 7, "device": 0, "grid": [2, 2, 1]}},
        ],
    }
)
_ASCEND = json.dumps(
    [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 3,
            "tid": 0,
            "args": {"name": "Ascend Hardware"},
        },
        {"ph": "X", "name": "Conv2D1", "pid": 3, "tid": 2, "ts": "1736408883704643.212", "dur": 2.5}
        | {"args": {"Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 4, "connection_id": 9}},
        {"ph": "s", "cat": "async_npu", "id": 1736408883704643212, "pid": 1, "tid": 1, "ts": "7.5"},
    ]
)
_COMMUNICATION = json.dumps(
    {
        "step50": {
            "collective": {
                "op@1": {
                    "Communication Time Info": {"Start Timestamp(us)": 1.5, "Elapse Time(ms)": 2.5},
                    "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": 1.5}},
                }
            }
        }
    }
)
_SEEDS = [text.encode() for text in (_CSV, _TRACE, _ASCEND, _COMMUNICATION)]
_NASTY = [
    *(b"\x00", b'"', b"\xff\xfe", b",", b"\n", b"[", b"{", b"}", b"]", b":", b"\\", b"-", b"e"),
    *(b"9" * 400, b"1e999", b"NaN", b"null", b"-0.5", b"[[[[", b'"""', b"\t", b"\xef\xbb\xbf"),
    *(b"18446744073709551616", b"9223372036854775807", b"\\ud800", b"true", b'"a":1,'),
]


def _try(path: Path) -> Profile | None:
    """What is read, or None for a file that is refused as it should be."""
    try:
        return read(path)
    except UserError:
        return None


@settings(max_examples=150)
@given(
    st.sampled_from(_SEEDS),
    st.lists(
        st.tuples(
            st.sampled_from(["cut", "drop", "insert", "repeat", "flip"]),
            st.floats(0, 1),
            st.integers(1, 40),
            st.sampled_from(_NASTY),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["utf-8", "utf-16", "gb18030"]),
    st.booleans(),
)
def test_damaged_files_are_read_in_part_or_refused(
    seed: bytes, damages: list[tuple[str, float, int, bytes]], encoding: str, packed: bool
) -> None:
    content = seed.decode().encode(encoding)
    for kind, place, length, nasty in damages:
        at = int(place * len(content))
        if kind == "cut":
            content = content[:at]
        elif kind == "drop":
            content = content[:at] + content[at + length :]
        elif kind == "insert":
            content = content[:at] + nasty + content[at:]
        elif kind == "repeat":
            content = content[:at] + content[at : at + length] * 3 + content[at + length :]
        else:
            content = content[:at] + bytes([255 - byte for byte in content[at : at + 2]]) + nasty
    if packed:
        content = gzip.compress(content, 1)[: len(content) + 20]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        _try(path)


@settings(max_examples=40)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_not_a_profile(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        _try(path)


@pytest.mark.parametrize("cut", range(20, len(_TRACE) - 2, 61))
def test_truncated_trace_gives_the_events_before_the_cut(tmp_path: Path, cut: int) -> None:
    (tmp_path / "x.json").write_text(_TRACE[:cut])
    profile = _try(tmp_path / "x.json")
    if profile is not None:
        assert any("the end" in gap.what for gap in profile.missing)


def test_truncated_table_gives_the_rows_before_the_cut(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(_CSV[: _CSV.index("9.5")])
    profile = read(tmp_path / "x.csv")
    assert profile.ops["name"].to_list() == ["a"]
    assert [gap.what for gap in profile.missing[-2:]] == [
        "1 line dropped: line 3 has 5 of 10 fields",
        "the end: the last line, 3, is incomplete",
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"traceEvents": ' + b"[" * 200_000,
        b'[{"ph": "X", "args": ' + b'{"a":' * 100_000,
        b'[{"ph": "X", "ts": ' + b"9" * 200_000 + b"}]",
        b"Name,Duration(us),Accelerator Core" + b"," * 400_000,
        b"Name,Duration(us),Accelerator Core\n" + b'"' + b"x" * 400_000,
        b"Name," * 50_000,
    ],
    ids=["array", "events", "objects", "digits", "header", "quote", "names"],
)
def test_endless_and_nested_content_is_refused_or_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    _try(tmp_path / "x")


def test_endless_event_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_VALUE_LENGTH", 1 << 20)
    (tmp_path / "x").write_text(_ASCEND[:-1] + ', {"ph": "X", "name": "' + "x" * (6 << 20))
    profile = read(tmp_path / "x")
    assert profile.ops.height == 1
    assert "longer than 1 MiB" in profile.missing[-1].what


@pytest.mark.parametrize("category", ["cpu_op", "kernel", "cuda_runtime", "python_function"])
def test_unpaired_surrogate_in_a_trace_becomes_a_question_mark(
    tmp_path: Path, category: str
) -> None:
    place = {"ph": "X", "pid": 0, "tid": 1, "args": {"External id": 1, "correlation": 1}}
    event = {**place, "cat": category, "name": "a\ud800b", "ts": 3, "dur": 2}
    known = [
        {**place, "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 1},
        {**place, "cat": "kernel", "name": "add_kernel", "ts": 8, "dur": 1},
    ]
    file = tmp_path / "trace.json"
    trace = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [*known, event]}
    file.write_text(json.dumps(trace), encoding="utf-8")
    profile = read(file)
    names = [*profile.ops["name"], *profile.ops["kernel"], *profile.host["name"]]
    assert any(str(name).startswith("a?b") for name in names)


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_zip_is_read_like_its_folder(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", {"rank0_ascend_pt/k.csv": _CSV.encode(), "notes": b"x"})
    profile = read(path)
    assert profile.ops.height == 2
    assert profile.files[0][0] == f"{path}/rank0_ascend_pt/k.csv"


@pytest.mark.parametrize(
    "name", ["../k.csv", "/tmp/k.csv", "a/../../k.csv", "C:\\k.csv", "..\\k.csv"]
)
def test_zip_with_outside_paths_is_refused(tmp_path: Path, name: str) -> None:
    path = _zip(tmp_path / "p.zip", {name: _CSV.encode()})
    with pytest.raises(UserError, match="outside"):
        read(path)


def test_zip_bomb_is_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", {"k.csv": b"0" * (40 << 20)})
    assert path.stat().st_size * archives.MAX_EXPANSION < 40 << 20
    with pytest.raises(UserError, match="far more"):
        read(path)


def test_broken_zip_is_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", {"k.csv": _CSV.encode()})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match="broken"):
        read(path)


def test_database_with_other_columns_and_values_is_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE STRING_IDS (id INTEGER, value TEXT);"
            "INSERT INTO STRING_IDS VALUES (1, 'Conv2D'), (NULL, 'x'), ('a', 2);"
            "CREATE TABLE TASK (startNs, endNs, globalTaskId);"
            "INSERT INTO TASK VALUES (10, 30, 5), ('x', 1e300, 6), (x'00ff', NULL, 7);"
            "CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER, opType);"
            "INSERT INTO COMPUTE_TASK_INFO VALUES (1, 5, 1), (1, 6, 'q'), (9, 7, NULL);"
            "CREATE VIEW STEP_TIME AS SELECT 1 AS id;"
        )
    profile = read(path)
    assert profile.ops.filter(profile.ops["start_ns"] == 10)["name"].to_list() == ["Conv2D"]
    path.write_bytes(path.read_bytes()[:6000])
    _try(path)


def test_opening_a_database_leaves_no_files(shared: Path) -> None:
    folder = shared / "data" / "msprof" / "torch_npu_level1_db"
    before = sorted(folder.rglob("*"))
    read(folder)
    assert sorted(folder.rglob("*")) == before


def test_missing_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(UserError, match="contains no profile"):
        read(tmp_path)
