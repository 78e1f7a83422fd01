"""A file that is no profile is refused with what it is."""

import gzip
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.profiling import read


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\xef\xbb\xbf\r\n \n", "is empty"),
        ("a.csv.gz", gzip.compress(b""), "is empty"),
        ("a.json", b'{"a": 1', "is JSON that ends in the middle"),
        ("a.json", b'[{"a": 1}, {"b"', "is JSON that ends in the middle"),
        ("a.json", b'{"a" 1 and then some more text that is not JSON at all', "not valid JSON"),
        ("a.json", b'{"a": 1}', "is JSON, but not of a kind that profilers write"),
        ("a.json.gz", gzip.compress(b'{"a": 1}'), "is JSON, but not of a kind that profilers"),
        ("a.csv", b"x,y\n1,2\n", "its header matches no known table"),
    ],
)
def test_file_alone_is_named_once_with_the_reason(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as told:
        read(path)
    assert str(told.value).startswith(f"{path}: {said}")


def test_files_of_a_folder_are_named_with_their_reasons(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.csv").write_text("x,y\n")
    with pytest.raises(UserError) as told:
        read(tmp_path)
    folder = str(tmp_path)
    assert told.value.where == folder
    assert told.value.what == (
        f"{folder}/a.csv: is empty; {folder}/b.csv: its header matches no known table"
    )
