"""Instances made from arrays: what must hold of each, and how often what is drawn."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.instance_batch import InstanceBatch
from jumar.data.text.original_order import Draws, Masking, truncate
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.segmenting import CONTINUES_WORD
from jumar.data.text.streaming_order import (
    VectorMasking,
    _truncate,
    flattened,
    streaming_instances,
)
from jumar.data.text.vocabulary import SPECIAL, Vocabulary
from tests.data.text.one_by_one import Made, instances

CLS, SEP, MASK = 2, 3, 4
VOCABULARY = Vocabulary(
    (*SPECIAL, *(f"w{i}" for i in range(2000)), *(f"##{i}" for i in range(500)))
)
FIRST_CONTINUING = len(SPECIAL) + 2000


def documents_of(count: int, seed: int = 0) -> list[list[list[int]]]:
    """Documents whose pieces say where they are from, but for chance."""
    random = np.random.default_rng(seed)
    return [
        [
            random.integers(5, len(VOCABULARY), random.integers(1, 30)).tolist()
            for _ in range(random.integers(1, 25))
        ]
        for _ in range(count)
    ]


def unmasked(batch: InstanceBatch, row: int) -> list[int]:
    ids = batch.ids[row].copy()
    count = batch.counts[row]
    ids[batch.positions[row, :count]] = batch.labels[row, :count]
    return ids[: batch.lengths[row]].tolist()


def segments(batch: InstanceBatch, row: int) -> tuple[list[int], list[int]]:
    ids, first = unmasked(batch, row), int(batch.firsts[row])
    return ids[1 : first - 1], ids[first:-1]


@given(
    st.integers(5, 70),
    st.integers(1, 30),
    st.floats(0, 1),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
    st.integers(1, 6),
    st.integers(0, 100),
)
def test_every_instance_is_well_formed(
    length: int,
    width: int,
    masked: float,
    short: float,
    whole_words: bool,
    pairs: bool,
    count: int,
    seed: int,
) -> None:
    options = PretrainingOptions(
        max_seq_length=length,
        max_predictions_per_seq=width,
        masked_lm_prob=masked,
        short_seq_prob=short,
        whole_word_mask=whole_words,
        next_sentence=pairs,
        random_seed=seed,
    )
    documents = documents_of(count, seed)
    text = {tuple(document) for document in map(joined, documents)}
    made = streaming_instances(flattened(documents), VOCABULARY, options, chunk=0, duplicate=0)
    for batch, keys in made:
        assert len(keys) == len(batch)
        assert batch.ids.shape == (len(batch), length)
        assert batch.positions.shape == (len(batch), width)
        for row in range(len(batch)):
            pieces, number = int(batch.lengths[row]), int(batch.counts[row])
            ids = unmasked(batch, row)
            assert pieces <= length
            assert not batch.ids[row, pieces:].any()
            specials = [0, int(batch.firsts[row]) - 1, *([pieces - 1] if pairs else [])]
            assert [place for place, each in enumerate(ids) if each in (CLS, SEP)] == specials
            first, second = segments(batch, row)
            assert first
            assert any(holds(whole, first) for whole in text)
            assert bool(second) == pairs
            assert not pairs or any(holds(whole, second) for whole in text)
            positions = batch.positions[row, :number].tolist()
            assert positions == sorted(set(positions))
            assert not set(positions) & set(specials)
            assert not batch.positions[row, number:].any()
            assert number <= options.predictions(pieces)
            if not whole_words:
                assert number == min(options.predictions(pieces), pieces - len(specials))


def joined(document: list[list[int]]) -> list[int]:
    return [piece for sentence in document for piece in sentence]


def holds(whole: tuple[int, ...], part: list[int]) -> bool:
    return any(
        whole[start : start + len(part)] == tuple(part)
        for start in range(len(whole) - len(part) + 1)
    )


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1), st.integers(2, 50))
def test_segments_shrink_to_the_lengths_of_the_original(
    lengths: list[tuple[int, int]], most: int
) -> None:
    spans = np.array([(100, 100 + a, 500, 500 + b, 0) for a, b in lengths])
    _truncate(spans, most, np.random.default_rng(0))
    for (a, b), row in zip(lengths, spans.tolist(), strict=True):
        first, second = list(range(a)), list(range(b))
        truncate(first, second, most, Draws(0))
        assert (row[1] - row[0], row[3] - row[2]) == (len(first), len(second))
        assert 100 <= row[0] <= row[1] <= 100 + a
        assert 500 <= row[2] <= row[3] <= 500 + b


def rows_of(lengths: list[int], width: int, random: np.random.Generator) -> np.ndarray:
    ids = np.zeros((len(lengths), width), dtype=np.int32)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = random.integers(5, len(VOCABULARY), length)
        row[0] = CLS
        row[length // 2] = row[length - 1] = SEP
    return ids


@pytest.mark.parametrize("marked", [False, True])
def test_whole_words_are_masked_while_they_fit(marked: bool) -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(5, 41, 300).tolist()
    ids = rows_of(lengths, 40, random)
    if marked:
        ids[(random.random(ids.shape) < 0.3) & (ids > MASK)] |= CONTINUES_WORD
    options = PretrainingOptions(
        max_seq_length=40,
        max_predictions_per_seq=6,
        whole_word_mask=True,
        segmenter="spaces" if marked else "none",
    )
    made = VectorMasking(VOCABULARY, options)(
        ids.copy(),
        np.array(lengths, dtype=np.int32),
        np.zeros(300, dtype=np.int32),
        np.zeros(300, dtype=np.bool_),
        random,
    )
    assert made.ids.max() < len(VOCABULARY)
    words_of = Masking(VOCABULARY, options)._candidates
    for row, length in enumerate(lengths):
        words = [set(word) for word in words_of(ids[row, :length].tolist())]
        chosen = set(made.positions[row, : made.counts[row]].tolist())
        assert all(word <= chosen or not word & chosen for word in words)
        room = options.predictions(length) - len(chosen)
        assert room >= 0
        # Whatever was left out did not fit any more when its turn came.
        assert all(word <= chosen or len(word) > room for word in words)


def test_masks_have_the_originals_shares_and_are_uniform() -> None:
    random = np.random.default_rng(2)
    rows, length = 4000, 33
    ids = rows_of([length] * rows, length, random)
    options = PretrainingOptions(max_seq_length=length, max_predictions_per_seq=5)
    made = VectorMasking(VOCABULARY, options)(
        ids.copy(),
        np.full(rows, length, dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
        np.zeros(rows, dtype=np.bool_),
        random,
    )
    assert (made.counts == 5).all()
    total = rows * 5
    shown = np.take_along_axis(made.ids, made.positions, axis=1)
    assert (shown == MASK).mean() == pytest.approx(0.8, abs=0.015)
    assert (shown == made.labels).mean() == pytest.approx(0.1, abs=0.012)
    others = shown[(shown != MASK) & (shown != made.labels)]
    assert len(np.unique(others)) > 0.5 * len(VOCABULARY) * (1 - np.exp(-0.1 * total / 2505))
    places = Counter(made.positions.reshape(-1).tolist())
    assert set(places) == set(range(length)) - {0, length // 2, length - 1}
    assert max(places.values()) < 1.25 * min(places.values())


def test_half_of_the_pairs_are_random_and_short_lengths_have_the_requested_share() -> None:
    sentences = [[5 + number] * 10 for number in range(200)]
    documents = [sentences[start : start + 20] for start in range(0, 200, 20)] * 20
    options = PretrainingOptions(max_seq_length=63, max_predictions_per_seq=5, short_seq_prob=0)
    short = PretrainingOptions(max_seq_length=63, max_predictions_per_seq=5, short_seq_prob=1)
    text = flattened(documents)
    made = [b for b, _ in streaming_instances(text, VOCABULARY, options, chunk=0, duplicate=0)]
    flags = np.concatenate([batch.random_next for batch in made])
    assert flags.mean() == pytest.approx(0.5, abs=0.07)
    lengths = np.concatenate([batch.lengths for batch in made])
    assert (lengths == 63).mean() > 0.5
    for batch in made:
        for row in range(len(batch)):
            first, second = segments(batch, row)
            assert batch.random_next[row] or second[0] - first[-1] in (0, 1)
    few = [b for b, _ in streaming_instances(text, VOCABULARY, short, chunk=0, duplicate=0)]
    assert np.concatenate([batch.lengths for batch in few]).mean() < 50


def test_chunks_and_duplicates_draw_different_but_reproducible_numbers() -> None:
    text = flattened(documents_of(20))
    options = PretrainingOptions()

    def keys(chunk: int, duplicate: int, seed: int = 12345) -> bytes:
        chosen = PretrainingOptions(random_seed=seed)
        made = streaming_instances(text, VOCABULARY, chosen, chunk=chunk, duplicate=duplicate)
        return b"".join(each.tobytes() for _, each in made)

    assert options.random_seed == 12345
    assert keys(1, 2) == keys(1, 2)
    assert len({keys(1, 2), keys(2, 1), keys(1, 1), keys(1, 2, seed=1)}) == 4


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (PretrainingOptions(max_seq_length=48, short_seq_prob=0.4), 40),
        (PretrainingOptions(max_seq_length=48, short_seq_prob=0.4, next_sentence=False), 40),
        (PretrainingOptions(max_seq_length=64, masked_lm_prob=0.5, max_predictions_per_seq=9), 30),
        (
            PretrainingOptions(
                max_seq_length=65,
                masked_lm_prob=0.3,
                whole_word_mask=True,
                segmenter="spaces",
                random_seed=7,
            ),
            30,
        ),
        # More than are drawn together.
        (PretrainingOptions(max_seq_length=16, max_predictions_per_seq=3), 150),
        # One document is its own neighbour.
        (PretrainingOptions(max_seq_length=24), 1),
    ],
)
def test_vectorised_results_equal_one_by_one_results(
    options: PretrainingOptions, count: int
) -> None:
    documents = documents_of(count, seed=count)
    if options.segmenter != "none":
        random = np.random.default_rng(1)
        for sentence in (sentence for document in documents for sentence in document):
            sentence[:] = [each | CONTINUES_WORD * int(random.random() < 0.3) for each in sentence]
    made: list[Made] = []
    streamed = streaming_instances(flattened(documents), VOCABULARY, options, chunk=5, duplicate=2)
    for batch, keys in streamed:
        for row in range(len(batch)):
            length, masked = int(batch.lengths[row]), int(batch.counts[row])
            assert not batch.ids[row, length:].any()
            assert not batch.positions[row, masked:].any()
            assert not batch.labels[row, masked:].any()
            made.append(
                Made(
                    batch.ids[row, :length].tolist(),
                    int(batch.firsts[row]),
                    bool(batch.random_next[row]),
                    batch.positions[row, :masked].tolist(),
                    batch.labels[row, :masked].tolist(),
                    int(keys[row]),
                )
            )
    assert made == instances(documents, VOCABULARY, options, chunk=5, duplicate=2)
    assert count != 150 or len(made) > 1024
