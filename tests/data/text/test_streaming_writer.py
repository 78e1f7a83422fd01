"""Pre-training data in streaming order: the same bytes after any interruption."""

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jumar.data.records.example import IntegerFeature, decode_example
from jumar.data.text import streaming_writer
from jumar.data.text.documents import chunk_documents, chunks_of
from jumar.data.text.instance_batch import payloads
from jumar.data.text.pretraining_files import PretrainingRequest, working_folder_of
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.streaming_order import flattened, streaming_instances
from jumar.data.text.streaming_writer import _sorted, _within, write_streaming
from jumar.data.text.tokenizer import Tokenizer, TokenizerRules
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
def test_bytes_do_not_depend_on_the_number_of_processes(
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


def test_every_instance_is_written_once_into_shards_of_similar_size(
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
def test_interrupted_call_resumes_and_ends_with_the_same_bytes(
    request_: PretrainingRequest, tmp_path: Path, workers: int, share: float
) -> None:
    write_streaming(replace(request_, destination=tmp_path / "whole"))

    def stop(done: int, total: int) -> None:
        if done > share * total:
            raise KeyboardInterrupt

    notices: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        write_streaming(replace(request_, progress=stop, notice=notices.append, workers=workers))
    assert "resumes from here" in notices[-1]
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
    assert notices[-1].startswith("resuming: ")
    assert not notices[-1].startswith("resuming: 0 of")
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


def test_partial_file_of_a_killed_call_is_not_used(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    interrupted(request_)
    place = working_folder_of(request_.destination)
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


def test_call_with_other_options_does_not_continue_earlier_work(
    request_: PretrainingRequest,
) -> None:
    interrupted(request_)
    other = replace(request_, options=replace(request_.options, random_seed=1))
    with pytest.raises(
        UserError, match="unfinished run differs from this one in: options"
    ) as error:
        write_streaming(other)
    assert "rm -r" in error.value.todo
    request_.files[0].write_text("the cat\n\nthe dog\n")
    with pytest.raises(UserError, match="unfinished run differs from this one in: texts"):
        write_streaming(request_)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "there is no text"),
        (b"\n\n \n", "there is no text"),
        ("☃\n☃ ☃\n".encode(), "no word consists"),
        (b"the cat\n" * 3000 + b"he \xff ran\n", "line 3001: is not UTF-8 text"),
    ],
)
def test_failed_call_leaves_no_files(
    request_: PretrainingRequest, tmp_path: Path, content: bytes, what: str, workers: int
) -> None:
    (tmp_path / "one.txt").write_bytes(content)
    with pytest.raises(UserError) as error:
        write_streaming(replace(request_, files=request_.files[:1], workers=workers))
    assert what in str(error.value)
    assert left_in(tmp_path) == ["one.txt", "two.txt"]


def test_existing_destination_is_refused(request_: PretrainingRequest) -> None:
    request_.destination.mkdir()
    with pytest.raises(UserError, match="already exists"):
        write_streaming(request_)


def test_too_small_disk_is_refused_before_any_work(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    huge = replace(request_, options=replace(request_.options, max_seq_length=20_000))
    with pytest.raises(UserError, match="is free"):
        write_streaming(replace(huge, options=replace(huge.options, dupe_factor=100_000)))
    assert left_in(tmp_path) == ["one.txt", "two.txt"]


def sorted_records(request: PretrainingRequest) -> list[tuple[int, bytes]]:
    """All records in the order of their keys, sorted in memory."""
    records: list[tuple[int, bytes]] = []
    for number, chunk in enumerate(chunks_of(request.files, request.chunk_bytes)):
        text = flattened(chunk_documents(TOKENIZER, chunk))
        for duplicate in range(request.options.dupe_factor):
            for batch, keys in streaming_instances(
                text, TOKENIZER.vocabulary, request.options, chunk=number, duplicate=duplicate
            ):
                records += zip(keys.tolist(), payloads(batch), strict=True)
    return sorted(records)


@pytest.mark.parametrize("part_bytes", [1 << 25, 2000])
def test_shard_has_its_share_of_the_keys_in_order(
    request_: PretrainingRequest, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming_writer, "PART_BYTES", part_bytes)
    notices: list[str] = []
    written = write_streaming(replace(request_, notice=notices.append))
    records = sorted_records(request_)
    for shard in range(3):
        path = request_.destination / f"pretraining-{shard:05}-of-00003.tfrecord"
        assert payloads_of(path) == [
            payload for key, payload in records if key * 3 // 2**64 == shard
        ]
    lines = [line for path in request_.files for line in path.read_text("utf-8").splitlines()]
    ids = [number for line in lines for number in TOKENIZER.ids(line)]
    assert written.documents == 120
    assert written.pieces == len(ids)
    assert written.unknown == ids.count(PIECES.index("[UNK]"))
    assert written.instances == len(records)
    # A record has its length, two checksums, and the payload.
    assert written.bytes == sum(8 + 4 + len(payload) + 4 for _, payload in records)
    assert [notice.partition(" instances")[1] for notice in notices] == [" instances"]


def test_progress_counts_the_text_once_for_chunks_and_once_for_shards(
    request_: PretrainingRequest,
) -> None:
    progress: list[tuple[int, int]] = []
    write_streaming(replace(request_, progress=lambda done, total: progress.append((done, total))))
    sizes = [
        sum(span.end - span.begin for span in chunk)
        for chunk in chunks_of(request_.files, request_.chunk_bytes)
    ]
    whole = sum(sizes)
    assert whole == sum(path.stat().st_size for path in request_.files)
    by_chunk = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    third = whole // 3
    by_shard = [2 * whole - third * left for left in (3, 2, 1, 0)]
    assert progress == [(done, 2 * whole) for done in (*by_chunk, *by_shard)]


def test_resumed_call_reports_existing_work_and_counts_from_it(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    chunks = [
        sum(span.end - span.begin for span in chunk)
        for chunk in chunks_of(request_.files, request_.chunk_bytes)
    ]
    whole = sum(chunks)

    def stop_after(least: int) -> list[str]:
        def stop(done: int, _total: int) -> None:
            if done >= least:
                raise KeyboardInterrupt

        notices: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            write_streaming(replace(request_, progress=stop, notice=notices.append))
        return notices

    assert stop_after(chunks[0] + 1)[1:] == ["stopped; the same command resumes from here"]
    place = working_folder_of(request_.destination)
    assert left_in(place) == ["chunks", "plan.json", "shards"]
    assert left_in(place / "chunks") == [
        f"{number:06}.{kind}" for number in (0, 1) for kind in ("json", "npy", "records")
    ]
    plan = json.loads((place / "plan.json").read_text(encoding="utf-8"))
    assert plan["versions"] == {"numpy": np.__version__}
    assert plan["order"] == "streaming"
    notices = stop_after(2 * whole - whole // 3 * 2)
    assert notices == [
        f"resuming: 2 of {len(chunks)} chunks and 0 of 3 shards exist",
        "stopped; the same command resumes from here",
    ]
    progress: list[tuple[int, int]] = []
    notices.clear()
    write_streaming(
        replace(
            request_,
            notice=notices.append,
            progress=lambda done, total: progress.append((done, total)),
        )
    )
    assert notices == [f"resuming: {len(chunks)} of {len(chunks)} chunks and 1 of 3 shards exist"]
    beyond = [2 * whole - whole // 3 * left for left in (2, 1, 0)]
    assert progress == [(done, 2 * whole) for done in (whole, *beyond)]


def test_call_with_other_options_is_refused_with_the_differences_and_how_to_restart(
    request_: PretrainingRequest,
) -> None:
    interrupted(request_)
    place = working_folder_of(request_.destination)
    with pytest.raises(UserError) as error:
        write_streaming(replace(request_, shards=4, chunk_bytes=5000))
    assert str(error.value) == (
        f"{request_.destination}: an unfinished run differs from this one in: shards, chunk_bytes\n"
        f"  Repeat that command to resume it, or start over: rm -r {place}"
    )
    plan = json.loads((place / "plan.json").read_text(encoding="utf-8"))
    (place / "plan.json").write_text(json.dumps({**plan, "later": 1}), encoding="utf-8")
    with pytest.raises(UserError, match="an unfinished run differs from this one in: options\n"):
        write_streaming(request_)


def test_finished_chunks_survive_a_disk_failure_and_without_any_nothing_is_left(
    request_: PretrainingRequest,
) -> None:
    def fail(done: int, _total: int) -> None:
        if done:
            raise UserError("the disk is full", where="here")

    place = working_folder_of(request_.destination)
    with pytest.raises(UserError, match="the disk is full"):
        write_streaming(replace(request_, progress=fail))
    assert left_in(place / "chunks") == ["000000.json", "000000.npy", "000000.records"]
    (place / "chunks" / "000000.json").unlink()
    (place / "chunks" / "000000.records").unlink()
    (place / "chunks" / "000000.records").mkdir()
    with pytest.raises(UserError, match=r"000000\.records"):
        write_streaming(request_)
    assert not place.exists()


@pytest.mark.parametrize("shards", [1, 3, 7])
def test_key_ranges_partition_each_run_without_gaps(shards: int) -> None:
    random = np.random.default_rng(0)
    edges = [-(-(2**64) * part // shards) for part in range(shards + 1)]
    # Keys at both sides of every edge, and anywhere.
    near = [key for edge in edges for key in (edge - 1, edge) if 0 <= key < 2**64]
    runs = [sorted(near), [], sorted(random.integers(0, 2**64, 50, np.uint64).tolist())]
    keys = np.array([key for run in runs for key in run], dtype=np.uint64)
    for part in range(shards):
        low, high = edges[part], edges[part + 1]
        result = [
            place
            for first, last in _within(keys, [len(run) for run in runs], low, high)
            for place in range(first, last)
        ]
        assert result == [place for place, key in enumerate(keys.tolist()) if low <= key < high]


def test_records_with_equal_keys_keep_corpus_order() -> None:
    keys = np.array([5, 2, 5, 2**64 - 1, 2], dtype=np.uint64)
    sizes = np.array([1, 2, 0, 3, 4], dtype=np.uint64)
    parts = [bytes(each) for each in _sorted(b"abbdddeeee", keys, sizes)]
    assert parts == [b"bb", b"eeee", b"a", b"", b"ddd"]


class DiesInWorkers(Tokenizer):
    """A tokenizer that the system ends where it is used, but for the process that asks."""

    def lines(self, text: str) -> Iterator[list[int]]:
        if multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().lines(text)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Vocabulary, TokenizerRules]]:
        return DiesInWorkers, (self.vocabulary, self.rules)


def test_dead_process_is_an_error_and_the_same_call_resumes(
    request_: PretrainingRequest, tmp_path: Path
) -> None:
    asked = replace(request_, workers=2)
    with pytest.raises(UserError) as error:
        write_streaming(replace(asked, tokenizer=DiesInWorkers(TOKENIZER.vocabulary)))
    assert str(error.value) == (
        "--workers 2: a process died, perhaps for lack of memory\n"
        "  Run the same command with fewer processes: it resumes from here."
    )
    assert not multiprocessing.active_children()
    notices: list[str] = []
    write_streaming(replace(asked, notice=notices.append))
    assert notices[0].startswith("resuming: 0 of ")
    assert left_in(tmp_path) == ["one.txt", "out", "two.txt"]
