"""Environment variables that a capture recorded."""

from pathlib import Path

import pytest

from jumar.profiling.reading.environment import read_metadata, variables
from jumar.profiling.reading.events import BrokenJson


def test_variables_come_from_the_metadata_and_are_empty_if_unset(tmp_path: Path) -> None:
    path = tmp_path / "profiler_metadata.json"
    path.write_text('{"ENV_VARIABLES": {"A": "1", "B": null, "C": 2}, "mine": {"D": "3"}}')
    content = read_metadata(path, "shown", "profiler_metadata")
    assert (content.file, content.kind, list(content.statistics)) == (
        *("shown", "profiler_metadata", ["environment"]),
    )
    table = content.statistics["environment"]
    assert table.columns == ["variable", "value"]
    assert table.rows() == [("A", "1"), ("B", ""), ("C", "2")]


@pytest.mark.parametrize("text", ["{}", '{"ENV_VARIABLES": []}', '{"ENV_VARIABLES": {}}'])
def test_metadata_without_variables_has_no_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profiler_metadata.json"
    path.write_text(text)
    assert read_metadata(path, "shown", "k").statistics == {}


def test_metadata_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "profiler_metadata.json"
    path.write_text("[1]")
    with pytest.raises(BrokenJson, match=r"^not a JSON object$"):
        read_metadata(path, "shown", "k")
    assert variables("x").is_empty()
