"""Which files a labelled text data set consists of."""

from pathlib import Path

import pytest

from jumar.data.text.labelled_parts import LabelledData, Part, TextData, part_file, unknown_label
from jumar.ground.errors import UserError
from jumar.settings import describe

SUFFIXES = (".tsv", ".txt")


def written(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("x")
    return folder


def test_folder_has_one_file_per_part(tmp_path: Path) -> None:
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
        (("train.tsv", "train.txt"), "the file is ambiguous: train.tsv, train.txt"),
    ],
)
def test_ambiguous_folder_is_refused(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    data = TextData(path=str(written(tmp_path / "a", *names)))
    with pytest.raises(UserError, match=message):
        part_file(data, "train", SUFFIXES)


def test_evaluating_on_the_training_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "train.tsv") / "train.tsv"
    for eval_path in ("", str(path)):
        with pytest.raises(UserError, match="no evaluation file other"):
            part_file(TextData(path=str(path), eval_path=eval_path), "eval", SUFFIXES)


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no data set"):
        part_file(TextData(), "train", SUFFIXES)
    with pytest.raises(UserError, match="there is no such file or folder"):
        part_file(TextData(path=str(tmp_path / "none")), "train", SUFFIXES)
    with pytest.raises(UserError, match="there is no such file"):
        part_file(TextData(path="x", eval_path=str(tmp_path / "none")), "eval", SUFFIXES)


def test_labels_are_listed_once() -> None:
    with pytest.raises(UserError, match="lists a label twice"):
        LabelledData(labels=("a", "b", "a")).check()
    assert "Did you mean 'neutral'?" in str(unknown_label("neutrall", ["neutral", "x"], "here"))


def refused(data: TextData, part: Part) -> str:
    with pytest.raises(UserError) as error:
        part_file(data, part, SUFFIXES)
    return str(error.value)


def test_missing_or_ambiguous_file_has_the_full_message(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", "train.tsv", "train_2.txt", "train.json", "x.tsv")
    (folder / "dev.tsv").mkdir()
    assert refused(TextData(path=str(folder)), "train") == (
        f"{folder}: the file is ambiguous: train.tsv, train_2.txt\n  Specify one: data.path=..."
    )
    assert refused(TextData(path=str(folder)), "eval") == (
        f"{folder}: there is no file dev* or val* of .tsv, .txt\n"
        "  Specify the file: data.eval_path=..., or none for no evaluation"
    )
    other = written(tmp_path / "b", "val.txt", "dev.tsv")
    assert refused(TextData(path=str(other)), "train") == (
        f"{other}: there is no file train* of .tsv, .txt\n  Specify the file: data.path=..."
    )
    assert refused(TextData(path=str(folder), eval_path=str(other)), "eval") == (
        f"{other}: the file is ambiguous: dev.tsv, val.txt\n  Specify one: data.eval_path=..."
    )
    assert refused(TextData(), "train") == (
        "data.path: no data set\n  Set it to a file or folder, for instance data.path=train.tsv"
    )
    train = folder / "train.tsv"
    # Another spelling of its path is the same file.
    again = TextData(path=str(train), eval_path=f"{folder}/./train.tsv")
    for data in (again, TextData(path=str(train))):
        assert refused(data, "eval") == (
            "data.eval_path: no evaluation file other than the training file\n"
            "  Specify another file, or none for no evaluation: data.eval_path=none"
        )
    named = TextData(path=str(train), eval_path=str(folder / "x.tsv"))
    assert part_file(named, "eval", SUFFIXES) == folder / "x.tsv"
    assert part_file(named, "train", SUFFIXES) == train
    for data, part, field in [
        (TextData(path=str(tmp_path / "none")), "train", "data.path"),
        (TextData(path=str(train), eval_path=str(tmp_path / "none")), "eval", "data.eval_path"),
    ]:
        assert refused(data, part).startswith(f"{field}: there is no such file or folder")


def test_unknown_label_error_suggests_the_nearest_and_lists_all() -> None:
    error = unknown_label("neutrall", ["neutral", "x"], "a.tsv, line 2")
    assert (error.where, error.what) == (
        "a.tsv, line 2",
        "the label 'neutrall' is not in the list",
    )
    assert error.todo == (
        "Did you mean 'neutral'? Known: neutral, x. To use another list: data.labels=..."
    )
    assert unknown_label("q", ["neutral", "x"], "").todo == (
        "Known: neutral, x. To use another list: data.labels=..."
    )
    LabelledData(labels=("a", "b")).check()
    with pytest.raises(UserError) as error_:
        LabelledData(labels=("a", "b", "a")).check()
    assert str(error_.value) == "data.labels: 'a,b,a' lists a label twice"


def test_settings_have_their_defaults_and_limits() -> None:
    rows = {row.path: (row.value, row.unit, row.allowed) for row in describe(LabelledData())}
    assert (
        rows
        | {
            "path": ("", "path", ""),
            "eval_path": ("", "path", ""),
            "do_lower_case": (True, "", ""),
            "max_seq_length": (128, "", "4 to 2048"),
            "batch_size": (32, "samples per rank", "1 or more"),
            "labels": ((), "", ""),
        }
        == rows
    )
    fields = LabelledData.__dataclass_fields__
    changeable = {name for name, field in fields.items() if field.metadata["changeable"]}
    assert changeable == {"eval_batch_size", "workers", "prefetch", "skip_corrupt", "eval_path"}
