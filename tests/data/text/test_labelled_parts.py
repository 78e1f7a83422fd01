"""Which files a labelled text data set consists of."""

from pathlib import Path

import pytest

from jumar.data.text.labelled_parts import LabelledData, TextData, part_file, unknown_label
from jumar.ground.errors import UserError

SUFFIXES = (".tsv", ".txt")


def written(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("x")
    return folder


def test_a_folder_has_a_file_for_each_part(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", "train_few.tsv", "val.txt", "dev.json", "test.tsv")
    data = TextData(path=str(folder))
    assert part_file(data, "train", SUFFIXES) == folder / "train_few.tsv"
    assert part_file(data, "eval", SUFFIXES) == folder / "val.txt"
    assert part_file(TextData(path=str(folder), eval_path="none"), "eval", SUFFIXES) is None
    other = written(tmp_path / "b", "dev.tsv")
    elsewhere = TextData(path=str(folder), eval_path=str(other))
    assert part_file(elsewhere, "eval", SUFFIXES) == other / "dev.tsv"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("dev.tsv",), r"there is no file train\* of .tsv, .txt"),
        (("train.tsv", "train.txt"), "several files could be meant: train.tsv, train.txt"),
    ],
)
def test_a_folder_that_does_not_say_which_is_refused(
    tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    data = TextData(path=str(written(tmp_path / "a", *names)))
    with pytest.raises(UserError, match=message):
        part_file(data, "train", SUFFIXES)


def test_evaluation_on_the_training_file_must_not_happen_by_accident(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "train.tsv") / "train.tsv"
    for eval_path in ("", str(path)):
        with pytest.raises(UserError, match="no file to score on"):
            part_file(TextData(path=str(path), eval_path=eval_path), "eval", SUFFIXES)


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no data given"):
        part_file(TextData(), "train", SUFFIXES)
    with pytest.raises(UserError, match="there is no such file or folder"):
        part_file(TextData(path=str(tmp_path / "none")), "train", SUFFIXES)
    with pytest.raises(UserError, match="there is no such file"):
        part_file(TextData(path="x", eval_path=str(tmp_path / "none")), "eval", SUFFIXES)


def test_labels_are_listed_once() -> None:
    with pytest.raises(UserError, match="names a label twice"):
        LabelledData(labels=("a", "b", "a")).check()
    assert "Did you mean 'neutral'?" in str(unknown_label("neutrall", ["neutral", "x"], "here"))
