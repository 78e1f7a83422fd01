"""The options for making BERT's pre-training instances of documents."""

from dataclasses import dataclass

from jumar.data.text.segmenting import SegmenterName
from jumar.ground.errors import UserError

MIN_LENGTH = 5
"""Minimum number of pieces in an instance: [CLS], a piece, [SEP], a piece, [SEP]."""
MAX_LENGTH = 1 << 16
OTHER_DOCUMENT_TRIES = 10
"""Attempts to draw a document for the second segment other than that of the first."""
_MAX_SEED = 2**63


@dataclass(frozen=True, kw_only=True)
class PretrainingOptions:
    """The options of google-research/bert's create_pretraining_data, and two additional ones.

    Attributes:
        max_seq_length: Pieces of an instance, with [CLS] and two [SEP].
        max_predictions_per_seq: Maximum number of masked pieces per instance.
        masked_lm_prob: Fraction of the pieces that are masked.
        short_seq_prob: Fraction of instances with a random, shorter length.
        dupe_factor: How often each document is used, each time with different masks.
        random_seed: Seed of all random choices.
        whole_word_mask: Whether either all pieces of a word are masked or none.
        next_sentence: Whether an instance is a pair of segments, of which the second is from
            another document in half of the cases; otherwise it is one segment.
        segmenter: Splits Chinese text into words for `whole_word_mask`.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    random_seed: int = 12345
    whole_word_mask: bool = False
    next_sentence: bool = True
    segmenter: SegmenterName = "none"

    def __post_init__(self) -> None:
        _within("--max-seq-length", self.max_seq_length, MIN_LENGTH, MAX_LENGTH)
        _within("--max-predictions-per-seq", self.max_predictions_per_seq, 1, MAX_LENGTH)
        _within("--masked-lm-prob", self.masked_lm_prob, 0, 1)
        _within("--short-seq-prob", self.short_seq_prob, 0, 1)
        _within("--dupe-factor", self.dupe_factor, 1, 100_000)
        _within("--random-seed", self.random_seed, 0, _MAX_SEED)
        if self.segmenter != "none" and not self.whole_word_mask:
            raise UserError(
                "a segmenter has no effect if single pieces are masked",
                where="--segmenter",
                todo="Add --do-whole-word-mask, or omit it.",
            )

    @property
    def max_pieces(self) -> int:
        """Maximum number of text pieces in an instance."""
        return self.max_seq_length - (3 if self.next_sentence else 2)

    def predictions(self, length: int) -> int:
        """Number of masked pieces in an instance of this length."""
        return min(self.max_predictions_per_seq, max(1, round(length * self.masked_lm_prob)))


def _within(where: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise UserError(f"{value}", where=where, todo=f"Allowed: {minimum} to {maximum}.")
