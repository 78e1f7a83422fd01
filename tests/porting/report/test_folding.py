from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.edits import Edit, FileReport, Place, Text
from jumar.porting.report.folding import Folded, Note, Shown, side_by_side
from tests.porting.report.reports import at, ported_file

LONG = "".join(f"value_{number} = {number}\n" for number in range(200))


def edit(line: int, line_after: int | None) -> Edit:
    return Edit(
        rule="rule",
        place=Place(line=line, column=1),
        place_after=Place(line=line_after, column=1) if line_after is not None else None,
        before="",
        after="",
        reason=Text(en="", zh=""),
        confidence="certain",
        source="",
    )


def file_of(before: str, after: str, *edits: Edit) -> FileReport:
    return FileReport(path="a.py", status="ported", before=before, after=after, edits=edits)


def notes_by_line(file: FileReport) -> dict[str, list[str]]:
    """The keys of the notes by the texts of both sides at their position."""
    return {
        f"{noted.row.left and noted.row.left.text}|{noted.row.right and noted.row.right.text}": [
            note.key for note in noted.notes
        ]
        for block in side_by_side(file, "f0")
        if isinstance(block, Shown)
        for noted in block.rows
        if noted.notes
    }


def test_every_edit_and_finding_is_shown_at_its_line() -> None:
    assert notes_by_line(ported_file()) == {
        "None|from npu_bridge.npu_init import npu_config_proto, npu_ops": ["f0-e0"],
        "    net = tf.nn.dropout(net, rate=1 - keep)|"
        "    net = npu_ops.dropout(net, keep_prob=1.0 - (1 - keep))": ["f0-e1"],
        "    config.gpu_options.allow_growth = True|None": ["f0-e2"],
        "    with tf.Session(config=config) as session:|"
        "    with tf.Session(config=npu_config_proto(config_proto=config)) as session:": ["f0-e3"],
        "    queue = tf.train.string_input_producer(names, shuffle=True)|"
        "    queue = tf.train.string_input_producer(names, shuffle=True)": ["f0-d0"],
        "            session.run('train')|            session.run('train')": ["f0-d1"],
    }


def test_inserting_edit_is_shown_at_its_lines_though_located_below_them() -> None:
    before = "import tensorflow\n\nx = 1\n"
    after = "import tensorflow\nimport npu_bridge\n\nx = 1\n"
    assert notes_by_line(file_of(before, after, edit(2, 3))) == {
        "None|import npu_bridge": ["f0-e0"]
    }


def test_inserting_edit_is_shown_at_lines_after_its_location() -> None:
    before = "a = 0\nrun(init)\nrun(step)\n"
    after = "a = 1\nrun(init)\nrun(broadcast)\nrun(step)\n"
    found = replace(edit(2, 2), before="run(init)", after="run(init)")
    assert notes_by_line(file_of(before, after, found)) == {"None|run(broadcast)": ["f0-e0"]}


def test_multi_line_edit_is_shown_at_its_first_changed_line() -> None:
    before = "call(\n    a,\n    b,\n)\n"
    after = "call(\n    a,\n    c,\n)\n"
    found = replace(edit(1, 1), before=before.rstrip(), after=after.rstrip())
    assert notes_by_line(file_of(before, after, found)) == {"    b,|    c,": ["f0-e0"]}


def test_only_lines_far_from_every_edit_are_folded() -> None:
    after = LONG.replace("value_100 = 100", "value_100 = -100")
    blocks = side_by_side(file_of(LONG, after, edit(101, 101)), "f0")
    assert [type(block) for block in blocks] == [Folded, Shown, Folded]
    first, shown, last = blocks
    assert isinstance(first, Folded)
    assert isinstance(shown, Shown)
    assert isinstance(last, Folded)
    assert (first.left, first.right, len(first.lines)) == (1, 1, 97)
    assert len(shown.rows) == 7
    assert (last.left, last.right, len(last.lines)) == (105, 105, 96)


def test_line_numbers_of_both_sides_continue_after_inserted_lines() -> None:
    before = LONG
    after = LONG.replace("value_50 = 50\n", "a = 1\nb = 2\nvalue_50 = 50\n")
    *_, last = side_by_side(file_of(before, after, edit(51, 51)), "f0")
    assert isinstance(last, Folded)
    assert last.right - last.left == 2


def test_short_unchanged_gaps_between_edits_are_not_folded() -> None:
    after = LONG.replace("value_50 = 50", "x").replace("value_60 = 60", "y")
    blocks = side_by_side(file_of(LONG, after, edit(51, 51), edit(61, 61)), "f0")
    assert [type(block) for block in blocks] == [Folded, Shown, Folded]


@given(
    lines=st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=40),
    changes=st.lists(st.integers(0, 39), max_size=5),
    places=st.lists(st.tuples(st.integers(1, 60), st.none() | st.integers(1, 60)), max_size=4),
)
def test_no_line_and_no_note_is_lost(
    lines: list[str], changes: list[int], places: list[tuple[int, int | None]]
) -> None:
    changed = [
        line if number not in changes else f"new {line}" for number, line in enumerate(lines)
    ]
    file = file_of(
        "".join(line + "\n" for line in lines),
        "".join(line + "\n" for line in changed),
        *(edit(*place) for place in places),
    )
    left: list[str] = []
    notes: list[Note] = []
    for block in side_by_side(file, "f0"):
        if isinstance(block, Folded):
            assert block.left == len(left) + 1
            left += block.lines
        else:
            left += [noted.row.left.text for noted in block.rows if noted.row.left is not None]
            notes += [note for noted in block.rows for note in noted.notes]
    assert left == lines
    if lines:
        assert sorted(note.key for note in notes) == sorted(
            f"f0-e{number}" for number in range(len(places))
        )


def test_byte_order_mark_is_not_part_of_the_first_line() -> None:
    (block,) = side_by_side(file_of("\ufeffa = 1\n", "\ufeffa = 2\n", edit(1, 1)), "f0")
    assert isinstance(block, Shown)
    assert block.rows[0].row.left is not None
    assert block.rows[0].row.left.text == "a = 1"


def test_locations_in_the_handwritten_report_match_its_texts() -> None:
    file = ported_file()
    for found in file.edits[1:]:
        assert at(file.before, found.before) == found.place
