"""The options of pre-training data: their defaults, limits, and what follows from them."""

from dataclasses import asdict

import pytest

from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.ground.errors import UserError

LIMITS: list[tuple[str, float, float, float]] = [
    ("max_seq_length", 5, 65536, 1),
    ("max_predictions_per_seq", 1, 65536, 1),
    ("masked_lm_prob", 0, 1, 0.01),
    ("short_seq_prob", 0, 1, 0.01),
    ("dupe_factor", 1, 100_000, 1),
    ("random_seed", 0, 2**63, 1),
]


def test_defaults_match_the_original() -> None:
    assert asdict(PretrainingOptions()) == {
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "masked_lm_prob": 0.15,
        "short_seq_prob": 0.1,
        "dupe_factor": 10,
        "random_seed": 12345,
        "whole_word_mask": False,
        "next_sentence": True,
        "segmenter": "none",
    }


@pytest.mark.parametrize(("option", "least", "most", "step"), LIMITS)
def test_limits_are_inclusive(option: str, least: float, most: float, step: float) -> None:
    for value in (least, most):
        assert getattr(PretrainingOptions(**{option: value}), option) == value  # type: ignore[arg-type]
    for value in (least - step, most + step):
        with pytest.raises(UserError) as error:
            PretrainingOptions(**{option: value})  # type: ignore[arg-type]
        assert error.value.what == f"{value}"
        assert error.value.where == "--" + option.replace("_", "-")
        assert error.value.todo == f"Allowed: {least} to {most}."


def test_segmenter_requires_whole_word_masking() -> None:
    assert PretrainingOptions(segmenter="spaces", whole_word_mask=True).segmenter == "spaces"
    with pytest.raises(UserError, match="single pieces are masked") as error:
        PretrainingOptions(segmenter="spaces")
    assert error.value.where == "--segmenter"
    assert error.value.todo == "Add --do-whole-word-mask, or omit it."


def test_instances_have_the_expected_piece_and_mask_counts() -> None:
    pairs = PretrainingOptions(max_seq_length=10, max_predictions_per_seq=3)
    assert pairs.max_pieces == 7
    assert PretrainingOptions(max_seq_length=10, next_sentence=False).max_pieces == 8
    # 0.15 of each: 0, 0.75, 1.5, 1.65, 3, 30; at least one, and three at most.
    assert [pairs.predictions(length) for length in (0, 5, 10, 11, 20, 200)] == [1, 1, 2, 2, 3, 3]
