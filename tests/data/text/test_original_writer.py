"""Pre-training data in the original's order: what is refused, and what is left behind."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.data.text.original_writer import _check_memory, counted_pieces, write_original
from jumar.data.text.pretraining_files import PretrainingRequest, working_folder_of
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.segmenting import CONTINUES_WORD
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.payloads import payloads_of
from tests.data.text.vocabularies import PIECES

TOKENIZER = Tokenizer(Vocabulary(PIECES))
TEXT = "the cat sat on the mat\nthe dog ran\na cat ran.\n\nthe dog sat on the cat\nhe ran\n"


def request(tmp_path: Path, text: str | bytes = TEXT, **options: int | bool) -> PretrainingRequest:
    path = tmp_path / "text.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PretrainingRequest(
        files=[path],
        tokenizer=TOKENIZER,
        options=PretrainingOptions(**{"max_seq_length": 16, **options}),  # type: ignore[arg-type]
        destination=tmp_path / "out",
        shards=2,
    )


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_same_request_gives_the_same_bytes(tmp_path: Path) -> None:
    contents: list[list[bytes]] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        asked = request(tmp_path / name)
        written = write_original(asked)
        files = sorted(asked.destination.glob("*.tfrecord"))
        contents.append([path.read_bytes() for path in files])
        assert sum(len(payloads_of(path)) for path in files) == written.instances
        assert sum(map(len, contents[-1])) == written.bytes
        assert written.documents == 2
        assert left_in(tmp_path / name) == ["out", "text.txt"]
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "there is no text"),
        ("\n \n\n", "there is no text"),
        ("☃ ☃\n☃\n", "no word consists"),
        (b"the cat\n\nhe \xff ran\n", "line 3: is not UTF-8 text: invalid start byte at byte 12"),
    ],
)
def test_failed_call_leaves_no_files(tmp_path: Path, text: str | bytes, what: str) -> None:
    with pytest.raises(UserError) as error:
        write_original(request(tmp_path, text))
    assert what in str(error.value)
    assert left_in(tmp_path) == ["text.txt"]


def test_ctrl_c_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(tmp_path)

    def interrupted(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    asked = PretrainingRequest(
        files=asked.files,
        tokenizer=TOKENIZER,
        options=asked.options,
        destination=asked.destination,
        progress=interrupted,
    )
    with pytest.raises(KeyboardInterrupt):
        write_original(asked)
    assert left_in(tmp_path) == ["text.txt"]


def test_existing_destination_and_single_segments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="instances are always pairs of segments"):
        write_original(request(tmp_path, next_sentence=False))
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match="already exists"):
        write_original(request(tmp_path))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_seq_length", 4),
        ("max_predictions_per_seq", 0),
        ("max_predictions_per_seq", 70_000),
        ("masked_lm_prob", 1.5),
        ("short_seq_prob", -0.1),
        ("dupe_factor", 0),
        ("random_seed", -1),
    ],
)
def test_out_of_range_options_are_named(option: str, value: float) -> None:
    with pytest.raises(UserError) as error:
        PretrainingOptions(**{"max_seq_length": 16, "max_predictions_per_seq": 5, option: value})  # type: ignore[arg-type]
    assert error.value.where == "--" + option.replace("_", "-")
    assert f"{value}" in error.value.what


def test_shortest_instances_have_two_pieces(tmp_path: Path) -> None:
    asked = request(tmp_path, max_seq_length=5, max_predictions_per_seq=1)
    assert write_original(asked).instances > 0


def test_progress_ends_at_all_instances_and_the_manifest_describes_them(
    tmp_path: Path,
) -> None:
    progress: list[tuple[int, int]] = []
    notices: list[str] = []
    asked = replace(
        request(tmp_path, dupe_factor=400),
        progress=lambda done, total: progress.append((done, total)),
        notice=notices.append,
    )
    written = write_original(asked)
    ends = [*range(1024, written.instances, 1024), written.instances]
    assert [done for done, _ in progress] == ends
    assert len(ends) > 1
    # The same number is expected for each pass over the text.
    (expected,) = {total for done, total in progress if done < 1100}
    assert expected % 400 == 0
    assert progress[-1][1] == max(expected, written.instances)
    assert re.match(r"about [\d,]+ instances, ", notices[0])
    manifest = json.loads((asked.destination / "pretraining.json").read_text(encoding="utf-8"))
    assert manifest["order"] == "original"
    assert manifest["written"] == {
        "documents": 2,
        "pieces": 22,  # a word each, but for "he", which is two, and the full stop
        "unknown": 0,
        "instances": written.instances,
        "bytes": sum(path.stat().st_size for path in asked.destination.glob("*.tfrecord")),
    }


def test_leftovers_of_a_killed_call_are_not_continued(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    place = working_folder_of(tmp_path / "out")
    (place / "shards" / "deep").mkdir(parents=True)
    (place / "shards" / "pretraining-00000-of-00002.tfrecord").write_bytes(b"half")
    (place / "instances").write_bytes(b"half" * 1000)
    write_original(request(tmp_path))
    write_original(request(tmp_path / "one"))
    assert left_in(tmp_path / "out") == left_in(tmp_path / "one" / "out")
    for name in left_in(tmp_path / "out")[:2]:
        assert (tmp_path / "out" / name).read_bytes() == (
            tmp_path / "one" / "out" / name
        ).read_bytes()


def test_unknown_pieces_count_with_or_without_continuation() -> None:
    documents = [[[1, 5, 1 | CONTINUES_WORD], [7]], [], [[5 | CONTINUES_WORD]]]
    assert counted_pieces(documents, 1) == (5, 2)


def test_documents_that_exceed_the_memory_are_refused() -> None:
    _check_memory(1)
    with pytest.raises(UserError) as error:
        _check_memory(2.0**60)
    # Nine bytes a piece.
    assert re.fullmatch(
        r"the documents need about 9,663,676,416\.0 GiB of memory in the original's order, but "
        r"only \S+ \S+ is free",
        error.value.what,
    )
    assert error.value.where == "--order original"
    assert error.value.todo == "--order streaming uses little memory for texts of any size."
