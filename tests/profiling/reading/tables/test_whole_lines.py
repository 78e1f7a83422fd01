"""What cannot be used of a table is left out, counted, and named with its place and text."""

import csv
import gzip
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.cli.profile_tables import as_json
from jumar.ground.errors import UserError
from jumar.profiling import Profile, read
from jumar.profiling.page import page
from jumar.profiling.reading.tables import whole_lines as lines_of
from jumar.profiling.reading.tables.whole_lines import is_regular, whole_lines
from jumar.profiling.reading.unreadable import Unreadable
from jumar.profiling.texts import missing_lines
from jumar.profiling.views import Answers

HEADER = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
    "Input Shapes,Input Data Types,aic_mac_ratio\n"
)
ROW = '50,a,Conv2D,AI_CORE,1736408883704643.212\t,3.5,0,8,"""2,3;4""",FLOAT,0.5\n'


def opened(folder: Path, content: str | bytes, name: str = "kernel_details.csv") -> Profile:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path)


def gaps(profile: Profile) -> list[str]:
    return [gap.what for gap in profile.missing]


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (ROW[: ROW.index(",0,8") + 2], "line 3 has 7 of 11 fields"),
        (ROW[: ROW.index("2,3") + 2], "line 3 ends inside quotes"),
        (ROW.replace(",3.5", ",1,234.5"), "line 3 has 12 fields instead of 11"),
        (ROW.replace(",0,8", ",8"), "line 3 has 10 of 11 fields"),
        (ROW.replace("3.5", "3.\0005"), "line 3 contains zero bytes"),
        ("\0" * 5000, "line 3 contains zero bytes"),
        (ROW.replace(",a,", ',"a,'), "line 3 has 5 of 11 fields"),
    ],
)
@pytest.mark.parametrize("more", [0, 3])
def test_damaged_line_loses_only_itself_and_is_named(
    tmp_path: Path, damaged: str, reason: str, more: int
) -> None:
    if more and not damaged.endswith("\n"):
        damaged += "\n"
    profile = opened(tmp_path, HEADER + ROW + damaged + ROW * more)
    assert profile.ops["duration_ns"].to_list() == [3500] * (1 + more)
    end = [] if more else ["the end: the last line, 3, is incomplete"]
    end = [] if "instead of" in reason else end
    assert gaps(profile) == [f"1 line dropped: {reason}", *end]


@pytest.mark.parametrize(
    ("changed", "column", "text", "kept"),
    [
        (("3.5", '"1,234.5"'), "Duration(us)", "1,234.5", 1),
        (("3.5", "3.5us"), "Duration(us)", "3.5us", 1),
        (("3.5", "-3.5"), "Duration(us)", "-3.5", 1),
        (("3.5", "9" * 30), "Duration(us)", "9" * 30, 1),
        ((",0,8", ",?,8"), "Wait Time(us)", "?", 2),
        ((",8,", ",8.5,"), "Block Dim", "8.5", 2),
        (("0.5\n", "50%\n"), "aic_mac_ratio", "50%", 2),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_non_numeric_field_is_named_with_line_column_and_text(
    tmp_path: Path, changed: tuple[str, str], column: str, text: str, kept: int, encoding: str
) -> None:
    content = HEADER + ROW.replace(",a,", ",卷积,") + ROW.replace(*changed, 1)
    profile = opened(tmp_path, content.encode(encoding))
    assert profile.ops.height == kept
    assert gaps(profile)[-1] == f"1 number cannot be read: line 3, column '{column}': '{text}'"


def test_missing_values_and_blanks_are_not_faults(tmp_path: Path) -> None:
    rows = [ROW.replace("0.5\n", f"{text}\n") for text in ("N/A", "", " 0.25\t", '"N/A"')]
    profile = opened(tmp_path, HEADER + "".join(rows) + "\n\r\n" + ROW.replace(",0,8", ",,N/A"))
    assert profile.missing == ()
    assert profile.ops["aic_mac_ratio"].to_list() == [None, None, 0.25, None, 0.5]


def test_line_numbers_match_the_file_despite_multi_line_fields_and_empty_lines(
    tmp_path: Path,
) -> None:
    broken = ROW.replace('"""2,3;4"""', '"2,3;\n4"')
    profile = opened(tmp_path, HEADER + "\n" + broken + ROW + ROW.replace("3.5", "x"))
    assert profile.ops["input_shapes"].to_list() == ["2,3;\n4", "2,3;4"]
    assert "line 6, column 'Duration(us)': 'x'" in gaps(profile)[-1]


def test_faults_are_counted_and_the_first_three_named(tmp_path: Path) -> None:
    bad = "".join(ROW.replace("3.5", f"x{place}") for place in range(9))
    profile = opened(tmp_path, HEADER + ROW + bad + "1,2\n" * 5)
    lines, numbers, end = gaps(profile)[-3:]
    assert end == "the end: the last line, 16, is incomplete"
    assert lines.startswith("5 lines dropped: line 12 has 2 of 11 fields; line 13")
    assert lines.endswith("; and 2 more")
    assert numbers.startswith("9 numbers cannot be read: line 3, column 'Duration(us)': 'x0'; ")
    assert numbers.endswith("; and 6 more")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HEADER, "has no rows"),
        (HEADER + ROW.replace("3.5", "x"), "line 2, column 'Duration(us)': 'x'"),
        (HEADER + ROW[:20], "line 2 has 5 of 11 fields"),
    ],
)
def test_table_without_remaining_rows_is_an_error_with_the_reason(
    tmp_path: Path, content: str, reason: str
) -> None:
    with pytest.raises(UserError) as caught:
        opened(tmp_path, content)
    assert reason in str(caught.value)


def test_last_field_without_a_line_break_may_be_truncated(tmp_path: Path) -> None:
    profile = opened(tmp_path, HEADER + ROW + ROW[:-1])
    assert profile.ops.height == 2
    assert gaps(profile)[-1].endswith("its last field may be cut off: '0.5'")


def test_truncated_compressed_table_gives_the_rows_before_the_cut(tmp_path: Path) -> None:
    rows = "".join(ROW.replace("643", f"{row * 7919 % 1000:03}") for row in range(20_000))
    packed = gzip.compress((HEADER + rows).encode())
    profile = opened(tmp_path, packed[: len(packed) // 2], "kernel_details.csv.gz")
    assert 5_000 < profile.ops.height < 15_000
    assert any("cannot be decompressed to the end" in gap for gap in gaps(profile))


@pytest.mark.parametrize(
    ("table", "damaged", "names"),
    [
        (
            "OP Type,Core Type,Count,Total Time(us),Ratio(%)\nA,AI_CORE,1,2,50\n",
            'B,AI_CORE,x,"1,000",50%\nC,AI',
            ("Count': 'x'", "Total Time(us)': '1,000'", "Ratio(%)': '50%'", "has 2 of 5 fields"),
        ),
        (
            "Device_id,Step,Computing,Communication,Free\n0,1,2,3,4\n",
            "0,2,x,3,4\n0,3,1",
            ("line 3, column 'Computing': 'x'", "has 3 of 5 fields"),
        ),
        (
            "full_op_name,execution_time\na,1.5\n",
            "b,fast\nc",
            ("line 3, column 'execution_time': 'fast'", "has 1 of 2 fields"),
        ),
        (
            "step_num,communication_cost,wait_cost,communication_operator_cost\n1,1,1,{}\n",
            '2,1,1,"{""a"": ["\nx,1,1,{}\n-,1,1,{}\n',
            ("line 3, column 'communication_operator_cost': '{", "line 4, column 'step_num': 'x'"),
        ),
    ],
)
def test_every_table_names_what_it_lost(
    tmp_path: Path, table: str, damaged: str, names: tuple[str, ...]
) -> None:
    (tmp_path / "op_summary.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nA,B,CPU,1,2\n"
    )
    (tmp_path / "table.csv").write_text(table + damaged)
    profile = read(tmp_path)
    said = " ".join(gap.what for gap in profile.missing if gap.file.endswith("table.csv"))
    for name in names:
        assert name in said


def test_terminal_json_and_page_show_lost_data(tmp_path: Path) -> None:
    profile = opened(tmp_path, HEADER + ROW + ROW.replace("3.5", "x") + "50,a\n")
    for said in (
        "\n".join(line for _, line in missing_lines(profile, "en")),
        str(json.loads(as_json(profile, Answers(tables={}, impossible={}), peak_rates=""))),
        page(profile),
    ):
        assert "line 4 has 2 of 11 fields" in said
        assert "line 3, column " in said


FIELDS = st.sampled_from(["", "1", "2.5", "a b", "x,y", 'q"q', "l\nl", "N/A"])


@given(st.lists(st.lists(FIELDS, min_size=3, max_size=3), max_size=8), st.booleans())
@settings(max_examples=100)
def test_csv_writer_output_is_read_completely(rows: list[list[str]], windows: bool) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n" if windows else "\n")
    writer.writerows([["Name", "Duration(us)", "Accelerator Core"], *rows])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_text(text.getvalue(), newline="")
        breaks = any("\n" in field for row in rows for field in row)
        assert is_regular(path, 3) == (not breaks)


@given(st.integers(0, 4 * len(ROW)))
@settings(max_examples=150)
def test_truncating_a_table_anywhere_invents_no_row(cut: int) -> None:
    rows = [ROW.replace("3.5", f"{place}.125") for place in range(1, 5)]
    with TemporaryDirectory() as folder:
        try:
            profile = opened(Path(folder), (HEADER + "".join(rows))[: len(HEADER) + cut])
        except UserError:
            assert cut < len(rows[0])
            return
    kept = profile.ops.height
    assert profile.ops["duration_ns"].to_list() == [1125, 2125, 3125, 4125][:kept]
    whole = sum(len(row) for row in rows[:kept])
    assert bool(profile.missing) == (cut != whole)


def taken(folder: Path, content: str, rows: int = 0) -> tuple[str, list[int], list[str]]:
    """What is left of a file, the lines that its rows came from, and what is said."""
    path = folder / "x.csv"
    path.write_bytes(content.encode())
    unreadable = Unreadable("x.csv")
    with whole_lines(path, unreadable) as lines:
        text = lines.path.read_bytes().decode()
        numbers = [lines.number(row) for row in range(rows)]
    # A copy is dropped.
    assert lines.path.exists() is (lines.path == path)
    return text, numbers, [gap.what for gap in unreadable.missing()]


END = "the end: the last line has no line break, so its last field may be cut off: "
CUT = "the end: the last line is cut off in its last field: "
DROPPED = "1 line dropped: line 3 has "
INCOMPLETE = "the end: the last line, 3, is incomplete"


@pytest.mark.parametrize(
    ("content", "left", "numbers", "said"),
    [
        ("a,b\n1,2\n3,4\n", "a,b\n1,2\n3,4\n", [2, 3], []),
        ("a,b\n1,2\n3,4", "a,b\n1,2\n3,4", [2, 3], [f"{END}'4'"]),
        ("a,b\n\n1,2\n \n3,4\n", "a,b\n1,2\n3,4\n", [3, 5], []),
        ("\na,b\n1,2\n", "a,b\n1,2\n", [3], []),
        ("a,b\n1\n3,4\n", "a,b\n3,4\n", [3], ["1 line dropped: line 2 has 1 of 2 fields"]),
        ("a,b,\n1,2\n3\n", "a,b,\n1,2\n", [2], [f"{DROPPED}1 of 3 fields", INCOMPLETE]),
        ("a,b\n1,2\n3\n\n ", "a,b\n1,2\n", [2], [f"{DROPPED}1 of 2 fields", INCOMPLETE]),
        ("a,b\n1,2\n3,", "a,b\n1,2\n3,", [2, 3], [f"{CUT}''"]),
        ("a,b\n1,\n3,", "a,b\n1,\n3,", [2, 3], [f"{END}''"]),
        ("a,b\n1,N/A\n3,N/", "a,b\n1,N/A\n3,N/", [2, 3], [f"{CUT}'N/'"]),
        ("a,b\n1,2\n3,-4.", "a,b\n1,2\n3,-4.", [2, 3], [f"{CUT}'-4.'"]),
        ("a,b\n1,2,\n", "a,b\n1,2,\n", [2], []),
        ("a,b\n1,2,, \n", "a,b\n1,2,, \n", [2], []),
        ("a,b\n1,2,3\n", "a,b\n", [], ["1 line dropped: line 2 has 3 fields instead of 2"]),
        ('a,b\n1,"2\n3"\n4,5\n', 'a,b\n1,"2\n3"\n4,5\n', [2, 4], []),
        ('a,b\n1,"2\n4,5\n', "a,b\n4,5\n", [3], ["1 line dropped: line 2 ends inside quotes"]),
        ('a,b\n1,"2""x"\n', 'a,b\n1,"2""x"\n', [2], []),
        ('a,"b,c"\n1,2\n', 'a,"b,c"\n1,2\n', [2], []),
        ("a,b\n1,2\r\n", "a,b\n1,2\r\n", [2], []),
        ("a,b\n1,\0\n3,4\n", "a,b\n3,4\n", [3], ["1 line dropped: line 2 contains zero bytes"]),
        ("a\n", "a\n", [], []),
    ],
)  # fmt: skip
def test_rows_are_complete_records_with_line_numbers(
    tmp_path: Path, content: str, left: str, numbers: list[int], said: list[str]
) -> None:
    assert taken(tmp_path, content, len(numbers)) == (left, numbers, said)


@pytest.mark.parametrize(("breaks", "whole"), [(3, True), (4, False)])
def test_quoted_field_may_span_a_limited_number_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: int, whole: bool
) -> None:
    monkeypatch.setattr(lines_of, "_MAX_LINES_IN_FIELD", 3)
    content = 'a,b\n1,"' + "x\n" * breaks + '"\n7,8\n'
    found, _, said = taken(tmp_path, content)
    assert (found == content) is whole
    assert found.endswith("7,8\n")
    assert bool(said) is not whole


def test_regularity_does_not_depend_on_window_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_of, "_CHUNK", 3)
    path = tmp_path / "x.csv"
    for text, fields, regular in (
        ('a,b\n"1,x",2\n3,4\n', 2, True),
        ('a,b\n"1,x",2\n3,4', 2, True),
        ('a,b\n"1,x",2\n3', 2, False),
        ("a,b\n1,2,3\n3,4\n", 2, False),
        ("a,b\n", 3, False),
        ("", 2, True),
        ('a,b\n1,"2\n', 2, False),
        ("a,b\n1,\0\n", 2, False),
    ):
        path.write_text(text)
        assert is_regular(path, fields) is regular, text
    monkeypatch.setattr(lines_of, "_MAX_PATTERNS", 1)
    path.write_text('a,b\n1,2\n"1",2\n"1","2"\n1,2\n1\n')
    assert not is_regular(path, 2)


def test_last_field_of_a_long_unterminated_line_is_reported(tmp_path: Path) -> None:
    for field, shown in (("y" * 59, "y" * 59), ("y" * 61, "y" * 60)):
        _, _, said = taken(tmp_path, f"a,b\n1,{field}")
        assert said == [f"{END}'{shown}'"]
