"""Third-party JSON: any defect is a ValueError."""

import pytest

from jumar.ground.json_text import parse_json


@pytest.mark.parametrize(
    "text", ["", "{", '{"a":' * 100_000, "[" * 100_000, "9" * 100_000, b"\xff\xfe{"]
)
def test_unparsable_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_json_is_parsed() -> None:
    assert parse_json(b'{"a": [1, null]}') == {"a": [1, None]}
