"""From logits to answers, as run_squad.py of google-research/bert and Ascend's copy do it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumar.data.text.basic_words import BasicWords


def best_indexes(logits: NDArray[np.floating], count: int) -> list[int]:
    """The positions of the largest logits, largest first; ties in order."""
    return np.argsort(-logits, kind="stable")[:count].tolist()


@dataclass(frozen=True)
class Guess:
    """A possible answer: its first and last position in a sample, and the sum of their logits."""

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
    longest: int,
) -> list[Guess]:
    """Answers from the best positions, best first; ties in the order found.

    Args:
        start: The logit of each position as the beginning of the answer.
        end: The same for its end.
        may_begin: The positions accepted as a beginning.
        may_end: The positions accepted as an end.
        n_best: Number of positions of each kind to consider.
        longest: Maximum tokens of an answer.
    """
    ends = [index for index in best_indexes(end, n_best) if may_end[index]]
    guesses = [
        Guess(first, last, float(start[first] + end[last]))
        for first in best_indexes(start, n_best)
        if may_begin[first]
        for last in ends
        if first <= last < first + longest
    ]
    return sorted(guesses, key=lambda guess: -guess.score)


def realigned(prediction: str, original: str, words: BasicWords) -> str:
    """The part of an original text that corresponds to a predicted text of joined words.

    Our own tokens have character offsets, so this is only needed for comparisons with predictions
    of the original scripts.

    Args:
        prediction: Words with blanks between them, lower case where `words` makes it so.
        original: The characters from which the prediction was cut.
        words: How the original was cut into words.

    Returns:
        The whole original where the prediction is not in it, or where characters were added or
        removed on the way.
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
    return original[
        original_positions[joined_positions.index(begin)] : original_positions[
            joined_positions.index(end)
        ]
        + 1
    ]
