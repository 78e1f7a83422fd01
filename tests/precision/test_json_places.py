"""Reading JSON with line numbers: the same values as json, each at its line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.precision.json_places import ITEM, JsonError, Leaf, read_leaves

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def leaves_of(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in leaves_of(item, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for item in value for leaf in leaves_of(item, (*path, ITEM))]
    return [(path, value)]


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_every_value_is_found_at_its_path_in_order(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert [(leaf.path, leaf.value) for leaf in read_leaves(text)] == leaves_of(value)


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_every_item_of_an_indented_array_has_its_own_line(items: list[str]) -> None:
    leaves = read_leaves(json.dumps(items, indent=1))
    assert [leaf.line for leaf in leaves] == list(range(2, 2 + len(items)))


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        expected = json.loads(text)
    except (ValueError, RecursionError):
        with pytest.raises(JsonError):
            read_leaves(text)
        return
    # NaN and Infinity are Python's extension, and a key twice is lost by json.
    try:
        result = [leaf.value for leaf in read_leaves(text)]
    except JsonError:
        return
    assert result == [leaf for _, leaf in leaves_of(expected)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n  "a": 1 // why\n}', 2),
        ('{\n  // why\n  "a": 1\n}', 2),
        ('// why\n{"a": 1}', 1),
        ('{\n  "a": 1, // why\n  "b": 2\n}', 2),
        ('{"a": [\n "x",\n "y" # why\n]}', 3),
        ('{"a": 1}\n/* why */', 2),
    ],
)
def test_comment_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(JsonError, match="comments are not JSON") as caught:
        read_leaves(text)
    assert caught.value.line == line


def test_comment_after_the_mistake_is_not_blamed_for_it() -> None:
    with pytest.raises(JsonError, match="not JSON") as caught:
        read_leaves('{"a": x\n// why\n}')
    assert caught.value.line == 1


def test_slashes_inside_a_name_are_not_a_comment() -> None:
    assert read_leaves('{"a//b": "http://x"}')[0].value == "http://x"


def test_duplicate_key_is_refused() -> None:
    with pytest.raises(JsonError, match="the key 'a' appears twice") as caught:
        read_leaves('{\n"a": 1,\n"a": 2}')
    assert caught.value.line == 3


@pytest.mark.parametrize("text", ["", "  \n", "NaN", '{"a": Infinity}', "[" * 100_000])
def test_empty_endless_and_python_only_texts_are_refused(text: str) -> None:
    with pytest.raises(JsonError):
        read_leaves(text)


def test_leaves_have_their_paths_and_lines() -> None:
    text = '{\n "a": [1, [],\n {"b": {}, "c": "x\\n,"}\n],\n\n "d": null}'
    assert read_leaves(text) == [
        Leaf(path=("a", "[]"), value=1, line=2),
        Leaf(path=("a", "[]"), value=[], line=2),
        Leaf(path=("a", "[]", "b"), value={}, line=3),
        Leaf(path=("a", "[]", "c"), value="x\n,", line=3),
        Leaf(path=("d",), value=None, line=6),
    ]
    assert read_leaves("[]") == [Leaf(path=(), value=[], line=1)]
    assert read_leaves("\n{}") == [Leaf(path=(), value={}, line=2)]


@pytest.mark.parametrize(
    ("text", "what", "line", "todo"),
    [
        (" \n", "the file is empty", 0, 'a file without changes is {"black-list": {}}'),
        ("[NaN]", "NaN is not JSON", 0, ""),
        ("[" * 100_000, "nested too deeply", 0, ""),
        ('{"a": 1,\n "a": 2}', "the key 'a' appears twice", 2, "merge both"),
        ("[1,\n2 3]", "not JSON: Expecting ',' delimiter", 2, ""),
        (
            "[1,\n\n# why\n2]",
            "comments are not JSON; CANN's reader rejects them too",
            3,
            "remove the comment",
        ),
        (
            "[1 /* x */]",
            "comments are not JSON; CANN's reader rejects them too",
            1,
            "remove the comment",
        ),
        ("[1 2,\n# why\n]", "not JSON: Expecting ',' delimiter", 1, ""),
    ],
)
def test_errors_are_reported_with_their_line(text: str, what: str, line: int, todo: str) -> None:
    with pytest.raises(JsonError) as error:
        read_leaves(text)
    assert (error.value.what, error.value.line, error.value.todo) == (what, line, todo)
    assert error.value.args == (what, line)
