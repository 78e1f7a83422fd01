"""Scores of text tasks on examples that can be counted by hand; see also tests/parity."""

import numpy as np
import pytest

from jumar.data.text.basic_words import BasicWords
from jumar.ground.errors import UserError
from jumar.tasks.scoring.answers import answer_f1, exact_match, segments
from jumar.tasks.scoring.entities import (
    Entity,
    EntityCounts,
    Scheme,
    check_scheme,
    entities,
    split_tag,
    strict_entities,
)
from jumar.tasks.scoring.label_rates import label_rates
from jumar.tasks.scoring.rates import Rates
from jumar.tasks.scoring.spans import Guess, best_indexes, best_spans, realigned


def test_rates_are_ratios_of_counts_and_zero_if_empty() -> None:
    assert Rates.of(2, 4, 8) == pytest.approx((0.5, 0.25, 1 / 3))
    assert Rates.of(0, 0, 5) == Rates.of(0, 5, 0) == Rates.of(0, 0, 0) == (0, 0, 0)
    assert Rates.of(1, 1, 1) == (1, 1, 1)


def test_labels_are_rated_together_or_each_by_itself() -> None:
    confusion = np.array([[5.0, 1, 0], [2, 3, 1], [0, 0, 4]])
    # Of the last two labels 3 and 4 are right, 4 and 5 predicted, 6 and 4 true.
    assert label_rates(confusion, [1, 2]) == pytest.approx(Rates.of(7, 9, 10))
    one, two = Rates.of(3, 4, 6), Rates.of(4, 5, 4)
    macro = [(a + b) / 2 for a, b in zip(one, two, strict=True)]
    assert label_rates(confusion, [1, 2], "macro") == pytest.approx(macro)
    weighted = [(6 * a + 4 * b) / 10 for a, b in zip(one, two, strict=True)]
    assert label_rates(confusion, [1, 2], "weighted") == pytest.approx(weighted)
    assert label_rates(np.zeros((2, 2)), [0, 1], "weighted") == (0, 0, 0)


def test_entity_continues_only_with_inner_tags_of_its_type() -> None:
    tags = ["B-PER", "I-PER", "E-PER", "E-PER", "O", "I-ORG", "M-ORG", "I-PER", "S-LOC", "I-LOC"]
    assert entities(tags) == [
        Entity("PER", 0, 2),
        Entity("PER", 3, 3),
        Entity("ORG", 5, 6),
        Entity("PER", 7, 7),
        Entity("LOC", 8, 8),
        Entity("LOC", 9, 9),
    ]
    assert entities(["B-A", "B-A", "O", "I-A"]) == [
        (kind, n, n) for kind, n in zip("AAA", (0, 1, 3), strict=True)
    ]
    assert [split_tag(tag) for tag in ("O", "M-X-Y", "S-")] == [("O", ""), ("I", "X-Y"), ("S", "")]


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("IOB2", [("A", 0, 2), ("C", 5, 5), ("F", 11, 13)]),
        ("IOBES", [("D", 6, 7), ("E", 8, 8), ("G", 14, 16)]),
    ],
)
def test_strict_entities_follow_their_scheme_to_the_end(
    scheme: Scheme, expected: list[tuple[str, int, int]]
) -> None:
    tags = ["B-A", "I-A", "M-A", "I-B", "O", "B-C", "B-D", "E-D", "S-E", "I-H", "E-H"]
    tags += ["B-F", "I-F", "I-F", "B-G", "I-G", "E-G", "E-I"]
    assert strict_entities(tags, scheme) == expected


def test_entities_that_do_not_follow_the_scheme_are_numbered() -> None:
    sentences = [["B-A", "I-A", "O", "I-A"], ["I-B", "B-A", "I-B"], ["O"]]
    assert check_scheme("IOB2", ["O", "B-A", "I-A", "I-B"], sentences) == (3, 5)
    bmes = [["B-A", "M-A", "E-A", "S-A", "B-A"]]
    assert check_scheme("IOBES", ["O", "B-A", "M-A", "E-A", "S-A"], bmes) == (1, 3)
    assert check_scheme("IOBES", ["O", "B-A"], [["O", "O"]]) == (0, 0)


@pytest.mark.parametrize(
    ("scheme", "tags", "message"),
    [
        ("IOB2", ["B-A", "I-A", "O", "S-A"], "the tag 'S-A' is not one of IOB2"),
        ("IOB2", ["B-A", "E-A"], "the tag 'E-A' is not one of IOB2"),
        ("IOB2", ["I-A", "O", "I-A"], "no entity of the evaluation data follows IOB2"),
        ("IOBES", ["B-A", "I-A", "O"], "no entity of the evaluation data follows IOBES"),
    ],
)
def test_tags_of_another_scheme_are_refused_instead_of_scored_0(
    scheme: Scheme, tags: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        check_scheme(scheme, tags, [tags])
    assert refused.value.where == "data.scoring"


def test_entities_are_counted_by_type_once_per_sentence() -> None:
    counts = EntityCounts()
    a, b, other = Entity("A", 0, 1), Entity("B", 2, 2), Entity("A", 3, 3)
    counts.add([a, b], [a, other])
    counts.add([b], [b, b])
    assert counts.total() == Rates.of(2, 3, 3)
    assert counts.by_type() == {"A": Rates.of(1, 2, 1), "B": Rates.of(1, 1, 2)}
    assert list(counts.by_type()) == ["A", "B"]
    assert EntityCounts().total() == (0, 0, 0)
    assert EntityCounts() == EntityCounts()


def test_answers_are_compared_without_case_and_some_punctuation() -> None:
    assert exact_match(["x", "A-b，c"], " a bc ".replace(" ", ""))
    assert exact_match([" Yes "], "yes。")
    assert not exact_match(["a b"], "ab")
    assert not exact_match([], "a")


def test_f1_uses_the_longest_common_substring_with_the_best_answer() -> None:
    # 2 of 4 characters in a row, of an answer of 3.
    assert answer_f1(["中国人"], "在中国的") == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    assert answer_f1(["人", "在中国的"], "在中国的") == 1
    # "a b" and "b a" have one word in common in a row.
    assert answer_f1(["one two"], "two one") == pytest.approx(0.5)
    assert answer_f1(["甲乙丙丁"], "甲丙乙丁") == pytest.approx(0.25)
    assert answer_f1(["x"], "y") == 0
    assert answer_f1([], "y") == 0
    assert segments("Ab-c中d。国", "official") == ["abc", "中", "d", "国"]
    assert segments("a1中", "ascend") == ["a", "1", "中"]


def test_best_positions_are_sorted_by_score_with_ties_to_the_first() -> None:
    assert best_indexes(np.array([1.0, 3, 2, 3, 0]), 4) == [1, 3, 2, 0]
    ones = np.ones(3, dtype=bool)
    result = best_spans(
        np.array([2.0, 1, 0]),
        np.array([0.0, 1, 2]),
        may_begin=ones,
        may_end=np.array([True, True, False]),
        n_best=3,
        max_length=2,
    )
    assert result == [Guess(0, 1, 3.0), Guess(0, 0, 2.0), Guess(1, 1, 2.0)]


def test_predicted_text_is_found_in_the_original_or_the_whole_is_used() -> None:
    words = BasicWords(lower_case=True)
    assert realigned("steve smith", "Mr Steve Smith's", words) == "Steve Smith"
    assert realigned("smith ' s", "Steve Smith's", words) == "Smith's"
    assert realigned("mr", "Mr Steve", words) == "Mr"
    assert realigned("jones", "Steve Smith's", words) == "Steve Smith's"
