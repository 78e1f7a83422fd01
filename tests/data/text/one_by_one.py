"""Streaming order without arrays: a piece, an instance, a mask at a time, from the same numbers."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.vocabulary import Vocabulary

MARK = 1 << 24
"""Of a piece that continues a Chinese word."""
AT_ONCE = 1024


@dataclass(frozen=True)
class Made:
    """An instance: all that is stored of it, unpadded, and its key."""

    ids: list[int]
    first: int
    is_random: bool
    positions: list[int]
    labels: list[int]
    key: int


Segments = tuple[list[int], list[int], bool]


def instances(
    documents: Sequence[Sequence[list[int]]],
    vocabulary: Vocabulary,
    options: PretrainingOptions,
    *,
    chunk: int,
    duplicate: int,
) -> list[Made]:
    generator = np.random.default_rng((3, options.random_seed, chunk, duplicate))
    draws = random.Random(int(generator.integers(2**63)))
    cut = (
        _pairs(documents, options, draws)
        if options.next_sentence
        else _singles(documents, options, draws)
    )
    made: list[Made] = []
    for begin in range(0, len(cut), AT_ONCE):
        some = cut[begin : begin + AT_ONCE]
        keys = generator.integers(0, 2**64, len(some), dtype=np.uint64).tolist()
        some = _truncated(
            some, options.max_seq_length - (3 if options.next_sentence else 2), generator
        )
        made += masked(some, keys, vocabulary, options, generator)
    return made


def _length(options: PretrainingOptions, most: int, draws: random.Random) -> int:
    if draws.random() < options.short_seq_prob:
        return 2 + int(draws.random() * (most - 1))
    return most


def _taken(sentences: Sequence[list[int]], wanted: int) -> int:
    """How many sentences have the wanted number of pieces together; at least one, at most all."""
    total = 0
    for count, sentence in enumerate(sentences, start=1):
        total += len(sentence)
        if total >= wanted:
            return count
    return len(sentences)


def _pairs(
    documents: Sequence[Sequence[list[int]]], options: PretrainingOptions, draws: random.Random
) -> list[Segments]:
    pairs: list[Segments] = []
    most = options.max_seq_length - 3
    for number, document in enumerate(documents):
        target = _length(options, most, draws)
        rest = list(document)
        while rest:
            count = _taken(rest, target)
            half = 1 + int(draws.random() * (count - 1)) if count > 1 else 1
            first = list(chain.from_iterable(rest[:half]))
            if count > 1 and draws.random() >= 0.5:
                pairs.append((first, list(chain.from_iterable(rest[half:count])), False))
                rest = rest[count:]
                continue
            other = number
            for _ in range(10):
                other = int(draws.random() * len(documents))
                if other != number:
                    break
            chosen = documents[other]
            chosen = chosen[int(draws.random() * len(chosen)) :]
            second = list(chain.from_iterable(chosen[: _taken(chosen, target - len(first))]))
            pairs.append((first, second, True))
            rest = rest[half:]
    return pairs


def _singles(
    documents: Sequence[Sequence[list[int]]], options: PretrainingOptions, draws: random.Random
) -> list[Segments]:
    singles: list[Segments] = []
    for document in documents:
        target = _length(options, options.max_seq_length - 2, draws)
        rest = list(document)
        while rest:
            count = _taken(rest, target)
            singles.append((list(chain.from_iterable(rest[:count])), [], False))
            rest = rest[count:]
    return singles


def _truncated(some: list[Segments], most: int, generator: np.random.Generator) -> list[Segments]:
    removed = np.zeros((2, len(some)), dtype=np.int64)
    for number, (first, second, _) in enumerate(some):
        left = [len(first), len(second)]
        while sum(left) > most:
            longer = 0 if left[0] > left[1] else 1
            left[longer] -= 1
            removed[longer, number] += 1
    in_front = [generator.binomial(each, 0.5) for each in removed]
    return [
        (
            first[in_front[0][number] : len(first) - (removed - in_front)[0][number]],
            second[in_front[1][number] : len(second) - (removed - in_front)[1][number]],
            is_random,
        )
        for number, (first, second, is_random) in enumerate(some)
    ]


def masked(
    some: list[Segments],
    keys: list[int],
    vocabulary: Vocabulary,
    options: PretrainingOptions,
    generator: np.random.Generator,
) -> list[Made]:
    start, end, mask = (vocabulary.ids[name] for name in ("[CLS]", "[SEP]", "[MASK]"))
    length = options.max_seq_length
    drawn = generator.integers(0, 2**31, (len(some), length), dtype=np.uint32).tolist()
    bits = (length - 1).bit_length()
    made: list[Made] = []
    for number, (first, second, is_random) in enumerate(some):
        ids = [start, *first, end, *second, *([end] if second else [])]
        sets: list[list[int]] = []
        for place, piece in enumerate(ids):
            if piece in (start, end):
                continue
            whole = options.whole_word_mask
            continues = piece >= MARK or vocabulary.pieces[piece % MARK].startswith("##")
            if whole and sets and continues:
                sets[-1].append(place)
            else:
                sets.append([place])
        # Single pieces are ranked by their places, words by their numbers.
        ranks = range(len(sets)) if options.whole_word_mask else [places[0] for places in sets]
        order = sorted(
            (drawn[number][rank] >> bits << bits | rank, places)
            for rank, places in zip(ranks, sets, strict=True)
        )
        room = max(1, round(len(ids) * options.masked_lm_prob))
        room = min(room, options.max_predictions_per_seq)
        positions: list[int] = []
        for _, places in order:
            if len(places) <= room:
                positions += places
                room -= len(places)
        positions.sort()
        ids = [piece % MARK for piece in ids]
        labels = [ids[place] for place in positions]
        made.append(Made(ids, len(first) + 2, is_random, positions, labels, keys[number]))
    count = sum(len(each.positions) for each in made)
    fates = iter(generator.random(count, np.float32).tolist())
    words = iter(generator.integers(0, len(vocabulary), count, dtype=np.int32).tolist())
    for each in made:
        for place in each.positions:
            fate, word = next(fates), next(words)
            if fate < np.float32(0.8):
                each.ids[place] = mask
            elif fate >= np.float32(0.9):
                each.ids[place] = word
    return made
