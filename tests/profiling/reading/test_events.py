"""Events of a JSON file, one at a time, from windows of its text."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.reading import events
from jumar.profiling.reading.events import BrokenJson, EventReader, load_json


class Pieces(io.BytesIO):
    """A file that returns a few bytes at a time, as a stream may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 7, 7) if size != -1 else 7)


def taken(text: str | bytes, pieces: bool = False) -> tuple[list[Any], dict[str, Any], str]:
    content = text.encode() if isinstance(text, str) else text
    reader = EventReader((Pieces if pieces else io.BytesIO)(content))
    found = list(reader)
    return found, reader.other_values, reader.problem


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"ts": 1.50, "n": 2}, {"a": "é"}]', ([{"ts": "1.50", "n": 2}, {"a": "é"}], {}, "")),
        (' [ ] ', ([], {}, "")),
        ('[1, "x", {"a": 1}, null, [{}]]', ([{"a": 1}], {}, "")),
        (
            '{"x": 1.5, "traceEvents": [{"a": 1}], "y" : [2], "traceEvents": {"b": 1}}',
            ([{"a": 1}], {"x": "1.5", "y": [2], "traceEvents": {"b": 1}}, ""),
        ),
        ('{"a": {}}', ([], {"a": {}}, "")),
        ('{"traceEvents": [{"a": 1}', ([{"a": 1}], {}, "truncated")),
        ('{"traceEvents": [{"a": 1}]', ([{"a": 1}], {}, "truncated")),
        ('[{"a": 1}, {"b', ([{"a": 1}], {}, "truncated")),
        ('[{"a": 1}, ', ([{"a": 1}], {}, "truncated")),
        ('{"a": 1, 5: 3}', ([], {"a": 1}, "not valid JSON")),
        ("", ([], {}, "not valid JSON")),
        ("true", ([], {}, "not valid JSON")),
        # A line break within a text is not JSON, but is written.
        ('[{"a": "x\ny"}]', ([{"a": "x\ny"}], {}, "")),
        ('[{"a": 1} {"b": 2}]', ([{"a": 1}, {"b": 2}], {}, "")),
    ],
)  # fmt: skip
def test_events_and_sibling_values_match_the_file(
    text: str, expected: tuple[list[Any], dict[str, Any], str], pieces: bool
) -> None:
    assert taken(text, pieces) == expected


def test_malformed_json_in_mid_window_is_detected() -> None:
    assert taken('[{"a": 1}, {"b" 2}, ' + "7, " * 40 + "{}]") == (
        [{"a": 1}],
        {},
        "not valid JSON",
    )


def test_overlong_or_too_deep_value_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_VALUE_LENGTH", 2 << 20)
    monkeypatch.setattr(events, "CHUNK", 1 << 10)
    within, beyond = ('[{"a": "' + "x" * length + '"}]' for length in ((2 << 20) - 8, 5 << 20))
    assert taken(within)[2] == ""
    assert taken(beyond) == ([], {}, "one value is longer than 2 MiB")
    assert taken("[" * 200_000)[2] == "nested too deeply"
    assert "4300" in taken("[1" + "0" * 5000 + "]")[2]


def test_truncated_compressed_trace_gives_the_events_before_the_cut() -> None:
    text = "[" + ",".join(json.dumps({"n": number, "x": "y" * 50}) for number in range(9000))
    cut = gzip.compress(text.encode())[:-200]
    reader = EventReader(gzip.GzipFile(fileobj=io.BytesIO(cut)))  # pyright: ignore[reportArgumentType]
    list(reader)
    assert reader.problem == (
        "cannot be decompressed to the end: "
        "Compressed file ended before the end-of-stream marker was reached"
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    text = '[{"name": "卷积", "padding": "' + "x" * 70 + '"}]'
    found, _, problem = taken(text.encode(encoding))
    assert (found[0]["name"], problem) == ("卷积", "")
    (tmp_path / "x.json").write_bytes(text.encode(encoding))
    assert load_json(tmp_path / "x.json")[0]["name"] == "卷积"


def test_single_values_are_loaded_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1.50, "b": [2, "x\ny", {"\\ud800k": "\\ud83d\\ude00 \\udc00"}]}')
    assert load_json(path) == {"a": "1.50", "b": [2, "x\ny", {"?k": "😀 ?"}]}
    path.write_text("1" + " " * 39)
    assert load_json(path, max_length=10) == 1
    path.write_text("1" + " " * 40)
    with pytest.raises(BrokenJson, match=r"^larger than 0 MiB$"):
        load_json(path, max_length=10)
    path.write_text("1" + " " * (4 << 20))
    with pytest.raises(BrokenJson, match=r"^larger than 4 MiB$"):
        load_json(path, max_length=1 << 20)
    path.write_text("[" * 200_000)
    with pytest.raises(BrokenJson, match=r"^nested too deeply$"):
        load_json(path)
    path.write_text('{"a" 1}')
    with pytest.raises(BrokenJson, match=r"^not valid JSON: Expecting ':' delimiter"):
        load_json(path)


@pytest.mark.parametrize(("characters", "problem"), [(32, "truncated"), (33, "not valid JSON")])
def test_only_errors_in_the_last_32_characters_count_as_truncation(
    characters: int, problem: str
) -> None:
    text = '[{"a": 1}, ' + "!".ljust(characters)
    assert taken(text) == ([{"a": 1}], {}, problem)
