"""Pre-training data in streaming order: the same bytes whatever happens meanwhile."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jumar.data.records.example import IntegerFeature, decode_example
from jumar.data.text import streaming_writer
from jumar.data.text.pretraining_files import PretrainingRequest, workplace_of
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.streaming_writer import write_streaming
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.payloads import payloads_of
from tests.data.text.vocabularies import PIECES

TOKENIZER = Tokenizer(Vocabulary(PIECES))
WORDS = (*"abc.,!", "the", "cat", "sat", "dog", "ran", "unwanted", "running", "中文", "词语")


def text_of(documents: int, seed: int) -> str:
    random = np.random.default_rng(seed)
    return "\n".join(
        "".join(
            " ".join(random.choice(WORDS, random.integers(3, 12))) + "\n"
            for _ in range(random.integers(1, 15))
        )
        for _ in range(documents)
    )


@pytest.fixture
def request_(tmp_path: Path) -> PretrainingRequest:
    """Two files in about ten chunks."""
    paths = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for seed, path in enumerate(paths):
        path.write_text(text_of(60, seed), encoding="utf-8")
    return PretrainingRequest(
        files=paths,
        tokenizer=TOKENIZER,
        options=PretrainingOptions(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=3),
        destination=tmp_path / "out",
        shards=3,
        chunk_bytes=4000,
    )


def shards_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.tfrecord"))]


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("workers", "part_bytes"), [(1, 1 << 25), (2, 3000), (3, 1 << 25)])
def test_the_same_bytes_with_any_number_of_processes(
    request_: PretrainingRequest,
    tmp_path: Path,
    workers: int,
    part_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = write_streaming(request_)
    monkeypatch.setattr(streaming_writer, "PART_BYTES", part_bytes)
    other = replace(request_, destination=tmp_path / "other", workers=workers)
    assert write_streaming(other) == first
    assert shards_of(tmp_path / "other") == shards_of(tmp_path / "out")
    assert sum(map(len, shards_of(tmp_path / "out"))) == first.bytes
    assert left_in(tmp_path) == ["one.txt", "other", "out", "two.txt"]


def test_every_instance_is_written_once_over_shards_of_about_the_same_size(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    written = write_streaming(request_)
    shards = [payloads_of(path) for path in sorted((tmp_path / "out").glob("*.tfrecord"))]
    assert sum(map(len, shards)) == written.instances
    assert max(map(len, shards)) < 1.5 * min(map(len, shards))
    manifest = json.loads((tmp_path / "out" / "pretraining.json").read_text(encoding="utf-8"))
    assert manifest["written"]["instances"] == written.instances
    assert manifest["options"]["max_seq_length"] == 32
    whole = write_streaming(replace(request_, destination=tmp_path / "whole", shards=1))
    assert whole.instances == written.instances
    # The order depends on the keys alone, not on the number of shards.
    assert payloads_of(tmp_path / "whole" / "pretraining-00000-of-00001.tfrecord") == [
        payload for shard in shards for payload in shard
    ]


def test_instances_of_one_chunk_are_spread_over_the_set(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    (tmp_path / "one.txt").write_text("the cat sat\nthe cat ran\n\n" * 800)
    (tmp_path / "two.txt").write_text("he ran on\nhe sat on\n\n" * 800)
    write_streaming(replace(request_, shards=1))
    cat = PIECES.index("cat")
    hits = []
    for payload in payloads_of(tmp_path / "out" / "pretraining-00000-of-00001.tfrecord"):
        ids = decode_example(payload)["input_ids"]
        assert isinstance(ids, IntegerFeature)
        hits.append(cat in ids.values)
    half = len(hits) // 2
    assert abs(np.mean(hits[:half]) - np.mean(hits[half:])) < 0.1


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("share", [0, 0.3, 0.8])
def test_an_interrupted_call_goes_on_and_ends_with_the_same_bytes(
    request_: PretrainingRequest, tmp_path: Path, workers: int, share: float
) -> None:
    write_streaming(replace(request_, destination=tmp_path / "whole"))

    def stop(done: int, total: int) -> None:
        if done > share * total:
            raise KeyboardInterrupt

    notices: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        write_streaming(replace(request_, progress=stop, notice=notices.append, workers=workers))
    assert "goes on from here" in notices[-1]
    assert not (tmp_path / "out").exists()
    progress: list[tuple[int, int]] = []
    write_streaming(
        replace(
            request_,
            notice=notices.append,
            progress=lambda done, total: progress.append((done, total)),
            workers=workers,
        )
    )
    assert notices[-1].startswith("going on: ")
    assert not notices[-1].startswith("going on: 0 of")
    assert max(done for done, _ in progress[:2]) >= progress[0][1] * share > -1
    assert all(done <= total for done, total in progress)
    assert shards_of(tmp_path / "out") == shards_of(tmp_path / "whole")
    assert left_in(tmp_path) == ["one.txt", "out", "two.txt", "whole"]


def interrupted(request: PretrainingRequest) -> None:
    def stop(done: int, _total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_streaming(replace(request, progress=stop))


def test_half_of_a_file_that_a_kill_left_is_not_taken_for_one(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    interrupted(request_)
    place = workplace_of(request_.destination)
    (place / "shards" / ".pretraining-00000-of-00003.tfrecord.99").write_bytes(b"half")
    (place / "chunks" / "000001.records").write_bytes(b"half")
    write_streaming(request_)
    assert left_in(tmp_path / "out") == [
        "pretraining-00000-of-00003.tfrecord",
        "pretraining-00001-of-00003.tfrecord",
        "pretraining-00002-of-00003.tfrecord",
        "pretraining.json",
    ]
    write_streaming(replace(request_, destination=tmp_path / "whole"))
    assert shards_of(tmp_path / "out") == shards_of(tmp_path / "whole")


def test_a_call_with_other_options_does_not_go_on_with_the_work_of_another(
    request_: PretrainingRequest,
) -> None:
    interrupted(request_)
    other = replace(request_, options=replace(request_.options, random_seed=1))
    with pytest.raises(UserError, match="unfinished call had other options") as error:
        write_streaming(other)
    assert "rm -r" in error.value.todo
    request_.files[0].write_text("the cat\n\nthe dog\n")
    with pytest.raises(UserError, match="unfinished call had other texts"):
        write_streaming(request_)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "there is no text"),
        (b"\n\n \n", "there is no text"),
        ("☃\n☃ ☃\n".encode(), "none of the words"),
        (b"the cat\n" * 3000 + b"he \xff ran\n", "line 3001: is not UTF-8 text"),
    ],
)
def test_nothing_is_left_of_what_cannot_be_made(
    request_: PretrainingRequest, tmp_path: Path, content: bytes, what: str, workers: int
) -> None:
    (tmp_path / "one.txt").write_bytes(content)
    with pytest.raises(UserError) as error:
        write_streaming(replace(request_, files=request_.files[:1], workers=workers))
    assert what in str(error.value)
    assert left_in(tmp_path) == ["one.txt", "two.txt"]


def test_the_destination_may_not_exist(request_: PretrainingRequest) -> None:
    request_.destination.mkdir()
    with pytest.raises(UserError, match="already exists"):
        write_streaming(request_)


def test_a_disk_that_is_too_small_is_refused_before_any_work(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    huge = replace(request_, options=replace(request_.options, max_seq_length=20_000))
    with pytest.raises(UserError, match="are free"):
        write_streaming(replace(huge, options=replace(huge.options, dupe_factor=100_000)))
    assert left_in(tmp_path) == ["one.txt", "two.txt"]
