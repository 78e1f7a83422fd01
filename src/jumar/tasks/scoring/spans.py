"""Extract answers from logits, as in run_squad.py of google-research/bert and Ascend's copy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumar.data.text.basic_words import BasicWords


def best_indexes(logits: NDArray[np.floating], count: int) -> list[int]:
    """Return the positions of the largest logits, largest first; equal logits keep their order."""
    return np.argsort(-logits, kind="stable")[:count].tolist()


@dataclass(frozen=True)
class Guess:
    """A candidate answer: its first and last position in a sample, and the sum of their logits."""

    first: int
    last: int
    score: float


def best_spans(
    start: NDArray[np.floating],
    end: NDArray[np.floating],
    *,
    may_begin: NDArray[np.bool_],
    may_end: NDArray[np.bool_],
    n_best: int,
    max_length: int,
) -> list[Guess]:
    """Return the candidate answers between the best positions, best first.

    Args:
        start: The logit of each position as the start of the answer.
        end: The logit of each position as the end of the answer.
        may_begin: Whether an answer may start at each position.
        may_end: Whether an answer may end at each position.
        n_best: Number of starts and of ends to consider.
        max_length: Maximum length of an answer in tokens.
    """
    ends = [index for index in best_indexes(end, n_best) if may_end[index]]
    guesses = [
        Guess(first, last, float(start[first] + end[last]))
        for first in best_indexes(start, n_best)
        if may_begin[first]
        for last in ends
        if first <= last < first + max_length
    ]
    return sorted(guesses, key=lambda guess: -guess.score)


def realigned(prediction: str, original: str, words: BasicWords) -> str:
    """Return the part of an original text that corresponds to a prediction of joined words.

    Jumar's tokens have character offsets, so this is only needed for comparisons with predictions
    of the original scripts.

    Args:
        prediction: Words separated by blanks, in lower case if `words` converts them.
        original: The text that contains the prediction.
        words: Splits the original into words.

    Returns:
        The part; the whole original if it does not contain the prediction, or if splitting has
        added or removed characters.
    """
    joined = " ".join(words(original))
    begin = joined.find(prediction)
    original_positions = [index for index, letter in enumerate(original) if letter != " "]
    joined_positions = [index for index, letter in enumerate(joined) if letter != " "]
    end = begin + len(prediction) - 1
    if (
        begin < 0
        or len(original_positions) != len(joined_positions)
        or not {begin, end} <= set(joined_positions)
    ):
        return original
    first, last = (original_positions[joined_positions.index(index)] for index in (begin, end))
    return original[first : last + 1]
