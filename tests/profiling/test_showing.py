"""Values of a profile as text that is safe to show."""

from typing import Any

import pytest

from jumar.profiling.showing import json_for_script, short_types, shown


@pytest.mark.parametrize(
    ("value", "options", "text"),
    [
        (None, {}, ""),
        (3, {}, "3"),
        (0, {}, "0"),
        (True, {}, "True"),
        (1.0, {}, "1"),
        (1.25, {}, "1.25"),
        (2.0004, {}, "2"),
        (2.0006, {}, "2.001"),
        (-0.0004, {}, "0"),
        (100.0, {}, "100"),
        (1.5, {"is_fixed": True}, "1.500"),
        (2.0, {"is_fixed": True}, "2.000"),
        (-0.0001, {"is_fixed": True}, "0.000"),
        (float("inf"), {}, ""),
        (float("nan"), {"is_fixed": True}, ""),
        ([1, "a"], {}, "1 | a"),
        ("a\x1b\n", {}, "a\\x1b\\n"),
        ("x" * 200, {}, "x" * 200),
        ("x" * 201, {}, "x" * 199 + "…"),
        ("x" * 5, {"max_characters": 5}, "xxxxx"),
        ("x" * 6, {"max_characters": 5}, "xxxx…"),
        # Spelt out it is longer than it was.
        ("ab\n", {"max_characters": 3}, "ab…"),
        ("ab\n", {"max_characters": 4}, "ab\\n"),
        ("\u200b" * 3, {"max_characters": 8}, "\\u200b\\…"),
        ("net.layer.fc", {"max_characters": 12, "keeps_end": True}, "net.layer.fc"),
        ("net.layer.fc", {"max_characters": 6, "keeps_end": True}, "…er.fc"),
        ("a\n\nb", {"max_characters": 4, "keeps_end": True}, "…\\nb"),
    ],
)
def test_values_are_shown_on_one_line_of_limited_length(
    value: object, options: dict[str, Any], text: str
) -> None:
    assert shown(value, **options) == text


@pytest.mark.parametrize(
    ("types", "text"),
    [
        (None, ""),
        ("FLOAT;FLOAT|FLOAT16", "FLOAT;FLOAT → FLOAT16"),
        ("FLOAT;FLOAT;FLOAT", "FLOAT;FLOAT;FLOAT"),
        ("FLOAT;FLOAT;FLOAT;FLOAT;INT64|BF16", "FLOAT x 4; INT64 → BF16"),
        ("INT64;INT64;FLOAT;FLOAT;FLOAT;FLOAT", "INT64 x 2; FLOAT x 4"),
        (";;;;", ";;;;"),
    ],
)
def test_repeated_types_are_counted(types: str | None, text: str) -> None:
    assert short_types(types) == text


def test_json_cannot_end_the_script_that_holds_it() -> None:
    assert json_for_script({"a": "</script>&", "b": [1, None]}) == (
        '{"a":"\\u003c/script\\u003e\\u0026","b":[1,null]}'
    )
    with pytest.raises(ValueError, match="JSON"):
        json_for_script(float("nan"))
