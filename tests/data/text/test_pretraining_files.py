"""What is asked before pre-training data are written, and the folder that they are written in."""

import fcntl
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.data.text import pretraining_files
from jumar.data.text.basic_words import BasicWords
from jumar.data.text.pretraining_files import (
    MAX_PIECES,
    PretrainingRequest,
    WrittenPretraining,
    check_found,
    check_outside_inputs,
    check_request,
    discard,
    facts_of,
    finish,
    ignored,
    locked_folder,
    shard_names,
    working_folder_of,
)
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.tokenizer import Tokenizer, TokenizerRules
from jumar.data.text.vocabulary import SPECIAL, Vocabulary
from jumar.ground.errors import UserError

RULES = TokenizerRules(words=BasicWords(True, False, True), longest_word=77)


@pytest.fixture
def request_(tmp_path: Path) -> PretrainingRequest:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a").write_text("the cat\n")
    return PretrainingRequest(
        files=[tmp_path / "texts" / "a"],
        tokenizer=Tokenizer(Vocabulary((*SPECIAL, "猫"), "vocab.txt"), RULES),
        options=PretrainingOptions(),
        destination=tmp_path / "out",
    )


def refused(request: PretrainingRequest) -> UserError:
    with pytest.raises(UserError) as error:
        check_request(request)
    return error.value


def test_default_request_is_eight_shards_in_one_process(
    request_: PretrainingRequest,
) -> None:
    assert (request_.shards, request_.workers, request_.chunk_bytes) == (8, 1, 4 * 2**20)
    assert request_.progress is request_.notice is ignored
    # Who watches does not make another request.
    assert replace(request_, progress=print, notice=print) == request_
    assert replace(request_, shards=9) != request_


@pytest.mark.parametrize("shards", [0, 100_000])
def test_shard_numbers_have_five_digits(request_: PretrainingRequest, shards: int) -> None:
    error = refused(replace(request_, shards=shards))
    assert str(error) == f"--shards: {shards} shards\n  Allowed: 1 to 99999."
    for allowed in (1, 99_999):
        check_request(replace(request_, shards=allowed))
    assert shard_names(2) == [
        "pretraining-00000-of-00002.tfrecord",
        "pretraining-00001-of-00002.tfrecord",
    ]


def test_vocabulary_has_at_most_two_million_pieces(
    request_: PretrainingRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_PIECES == 2_097_152
    monkeypatch.setattr(pretraining_files, "MAX_PIECES", 6)
    check_request(request_)
    monkeypatch.setattr(pretraining_files, "MAX_PIECES", 5)
    assert str(refused(request_)) == "vocab.txt: 6 word pieces\n  At most 5 are supported."


def test_texts_and_existing_files_are_not_overwritten(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    for place in ("texts", "texts/a", "texts/../texts", "."):
        error = refused(replace(request_, destination=tmp_path / place))
        assert str(error) == (
            f"{tmp_path / place}: would overwrite the text {tmp_path / 'texts' / 'a'}\n"
            "  Choose another folder."
        )
    check_request(replace(request_, destination=tmp_path / "texts" / "new"))
    request_.destination.mkdir()
    error = refused(request_)
    assert str(error) == (
        f"{request_.destination}: already exists\n  Remove it, or choose another folder."
    )


def test_destination_is_not_in_a_folder_of_texts(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (tmp_path / "file").write_text("a")
    check_outside_inputs([str(texts), str(tmp_path / "none")], tmp_path / "texts-pretraining")
    check_outside_inputs([str(tmp_path / "file")], tmp_path / "file" / "out")
    for inside in (texts, texts / "deep" / "er"):
        with pytest.raises(UserError) as error:
            check_outside_inputs([str(tmp_path / "file"), str(texts)], inside)
        assert str(error.value) == (
            f"{inside}: is inside the input folder {texts}\n"
            f"  Choose a folder outside it, for instance {texts}-pretraining."
        )


def test_facts_cover_everything_that_determines_the_output(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    path = tmp_path / "texts" / "a"
    os.utime(path, ns=(1, 1_700_000_000_000_000_007))
    facts = facts_of(replace(request_, shards=3, chunk_bytes=1000), "streaming")
    assert json.loads(json.dumps(facts)) == {
        "format": 1,
        "order": "streaming",
        "options": {
            "max_seq_length": 128,
            "max_predictions_per_seq": 20,
            "masked_lm_prob": 0.15,
            "short_seq_prob": 0.1,
            "dupe_factor": 10,
            "random_seed": 12345,
            "whole_word_mask": False,
            "next_sentence": True,
            "segmenter": "none",
        },
        "shards": 3,
        "chunk_bytes": 1000,
        "vocabulary": {
            "pieces": 6,
            "sha256": hashlib.sha256("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n猫".encode()).hexdigest(),
            "lower_case": True,
            "strip_accents": False,
            "split_chinese": True,
            "longest_word": 77,
        },
        "texts": [[str(path), 8, 1_700_000_000_000_000_007]],
    }


def test_work_folder_belongs_to_one_process_and_is_kept(tmp_path: Path) -> None:
    destination = tmp_path / ("n" * 61)
    with locked_folder(destination) as place:
        assert place == working_folder_of(destination) == tmp_path / f".{'n' * 60}.unfinished"
        assert place.is_dir()
        with (
            pytest.raises(UserError, match="another process is writing this folder") as error,
            locked_folder(destination),
        ):
            pass
        assert error.value.where == str(destination)
    # The lock is gone with the block, and the folder is not.
    descriptor = os.open(place, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with locked_folder(destination):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_full_disk_in_the_work_folder_is_reported_for_the_destination(
    tmp_path: Path,
) -> None:
    with (
        pytest.raises(UserError, match="cannot be written") as error,
        locked_folder(tmp_path / "out"),
    ):
        raise OSError(28, "No space left on device")
    assert error.value.where == str(tmp_path / "out")
    with pytest.raises(BrokenPipeError), locked_folder(tmp_path / "out"):
        raise BrokenPipeError


def test_finished_output_is_moved_into_place_with_a_manifest(request_: PretrainingRequest) -> None:
    place = working_folder_of(request_.destination)
    (place / "shards").mkdir(parents=True)
    (place / "shards" / "one").write_bytes(b"1")
    (place / "rest").write_bytes(b"2")
    facts = facts_of(request_, "original")
    written = WrittenPretraining(documents=1, pieces=2, unknown=3, instances=4, bytes=5)
    finish(place, request_, facts, written)
    assert not place.exists()
    assert (request_.destination / "one").read_bytes() == b"1"
    text = (request_.destination / "pretraining.json").read_text(encoding="utf-8")
    assert text == (
        json.dumps(
            {
                **facts,
                "texts": [str(request_.files[0])],
                "written": {"documents": 1, "pieces": 2, "unknown": 3, "instances": 4, "bytes": 5},
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )
    discard(place)  # which is gone already


def test_files_that_appeared_meanwhile_are_not_replaced(request_: PretrainingRequest) -> None:
    place = working_folder_of(request_.destination)
    (place / "shards").mkdir(parents=True)
    request_.destination.mkdir()
    written = WrittenPretraining(documents=1, pieces=2, unknown=3, instances=4, bytes=5)
    with pytest.raises(UserError, match="was created by another process") as error:
        finish(place, request_, facts_of(request_, "original"), written)
    assert error.value.where == str(request_.destination)
    assert (place / "shards").is_dir()


def test_texts_need_at_least_one_known_piece(request_: PretrainingRequest) -> None:
    check_found(2, 1, request_)
    with pytest.raises(UserError) as error:
        check_found(0, 0, replace(request_, files=[Path("a"), Path("b"), Path("c")]))
    assert str(error.value) == (
        "a, b, c: there is no text\n"
        "  Expected: one sentence per line, and a blank line between documents."
    )
    with pytest.raises(UserError) as error:
        check_found(2, 2, replace(request_, files=[Path(name) for name in "abcd"]))
    assert str(error.value) == (
        "a, b, c, ...: no word consists of pieces of the vocabulary\n"
        "  Is vocab.txt for this language?"
    )
