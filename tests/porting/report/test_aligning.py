from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.report.aligning import Row, align
from jumar.porting.report.showing import lines_of

SOURCES = st.lists(
    st.sampled_from(["a = 1", "b = f(a)", "b = g(a)", "", "\x0c", "c", "完成"]), max_size=30
).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r"]).map(
        lambda end: end.join(lines) if len(lines) % 2 else "".join(line + end for line in lines)
    )
)


def texts(rows: list[Row], side: str) -> list[str]:
    cells = [row.left if side == "left" else row.right for row in rows]
    present = [cell for cell in cells if cell is not None]
    assert [cell.number for cell in present] == list(range(1, len(present) + 1))
    return [cell.text for cell in present]


@given(before=SOURCES, after=SOURCES)
def test_each_side_reproduces_its_text(before: str, after: str) -> None:
    rows = align(before, after)
    assert texts(rows, "left") == [line.rstrip("\r\n") for line in lines_of(before)]
    assert texts(rows, "right") == [line.rstrip("\r\n") for line in lines_of(after)]
    assert all(row.left is not None or row.right is not None for row in rows)


@given(before=SOURCES, after=SOURCES)
def test_unmarked_rows_are_equal_on_both_sides(before: str, after: str) -> None:
    for row in align(before, after):
        if not row.changed:
            assert row.left is not None
            assert row.right is not None
            assert row.left.text == row.right.text


@given(before=st.text(max_size=200), after=st.text(max_size=200))
def test_unmarked_parts_of_a_line_are_equal_on_both_sides(before: str, after: str) -> None:
    for row in align(before, after):
        if row.left is not None and row.right is not None:
            left = [part.text for part in row.left.parts if not part.changed]
            right = [part.text for part in row.right.parts if not part.changed]
            assert "".join(left) == "".join(right)


def test_only_changed_words_are_marked() -> None:
    (row,) = align("s = tf.Session(graph=g)\n", "s = tf.Session(config=c, graph=g)\n")
    assert row.left is not None
    assert row.right is not None
    assert not any(part.changed for part in row.left.parts)
    assert [part.text for part in row.right.parts if part.changed] == ["config=c, "]


def test_changed_line_is_aligned_with_its_new_version_not_with_an_inserted_one() -> None:
    rows = align(
        "x = tf.nn.dropout(x, rate=r)\n",
        "keep = 1.0 - r\n# fused\nx = npu_ops.dropout(x, keep_prob=keep)\n",
    )
    assert [(row.left is not None, row.right is not None) for row in rows] == [
        (False, True),
        (False, True),
        (True, True),
    ]


def test_replaced_line_is_aligned_with_its_replacement_however_different() -> None:
    (row,) = align("import cupy\n", "DEVICE = 0\n")
    assert row.left is not None
    assert row.right is not None
    assert [part.changed for part in row.left.parts + row.right.parts] == [True, True]


def test_line_ending_change_is_named() -> None:
    (row,) = align("a\r\n", "a")
    assert row.left is not None
    assert row.right is not None
    assert (row.left.end, row.right.end) == ("CRLF", "none")


def test_hundreds_of_changed_lines_are_aligned_in_order() -> None:
    rows = align("".join(f"a{n}\n" for n in range(300)), "".join(f"b{n}\n" for n in range(200)))
    assert sum(row.left is not None and row.right is not None for row in rows) == 200
    assert len(rows) == 300
