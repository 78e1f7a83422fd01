"""Third-party JSON: any defect is a ValueError."""

import pytest

from jumar.ground.json_text import finite_or_text, flattened, mapped, parse_json


@pytest.mark.parametrize(
    "text", ["", "{", '{"a":' * 100_000, "[" * 100_000, "9" * 100_000, b"\xff\xfe{"]
)
def test_unparsable_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_numbers_that_json_lacks_become_texts() -> None:
    numbers = (1.5, 0, None, float("inf"), float("-inf"), float("nan"))
    assert [finite_or_text(number) for number in numbers] == [1.5, 0, None, "inf", "-inf", "nan"]


def test_nested_objects_are_flattened_to_paths() -> None:
    tree = {"a": 1, "b": {"c": [2], "d": {"e": None}, "f": {}}}
    assert flattened(tree) == {"a": 1, "b.c": [2], "b.d.e": None}
    assert list(flattened(tree, separator="/")) == ["a", "b/c", "b/d/e"]


def test_items_of_objects_and_lists_are_changed() -> None:
    assert mapped({"a": 1, "b": 2}, str) == {"a": "1", "b": "2"}
    assert mapped((1, [2]), str) == ["1", "[2]"]
    assert mapped(1, str) == 1


def test_json_is_parsed() -> None:
    assert parse_json(b'{"a": [1, null]}') == {"a": [1, None]}
