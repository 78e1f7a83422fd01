"""The scores of text tasks against the originals' on the same labels and answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.data.text.basic_words import BasicWords
from jumar.tasks.scoring.answers import Variant, answer_f1, exact_match, segments
from jumar.tasks.scoring.entities import (
    Entity,
    EntityCounts,
    Scheme,
    entities,
    strict_entities,
)
from jumar.tasks.scoring.label_rates import Average, label_rates
from jumar.tasks.scoring.rates import Rates
from jumar.tasks.scoring.spans import best_indexes, realigned


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "positives"),
    [("positives_2_7", range(2, 8)), ("positives_1_10", range(1, 11)), ("all", range(11))],
)
def test_label_rates_match_tf_metrics_after_each_batch(
    parity: Path, name: str, positives: range, average: Average, weighted: bool
) -> None:
    with np.load(parity / "scoring_ner.npz") as stored:
        labels, predictions, weights = (
            stored[f"in/{part}"] for part in ("labels", "predictions", "weights")
        )
        wanted = stored[f"r/{name}/{average}/{'weights' if weighted else 'plain'}"]
    confusion = np.zeros((11, 11))
    rows: list[Rates] = []
    for label, prediction, weight in zip(labels, predictions, weights, strict=True):
        np.add.at(confusion, (label, prediction), weight if weighted else 1)
        rows.append(label_rates(confusion, positives, average))
    np.testing.assert_allclose([*rows, rows[-1]], wanted, rtol=3e-7)


def entity_cases(parity: Path) -> dict[str, Any]:
    return json.loads((parity / "scoring_entities.json").read_text())["cases"]


def test_entities_and_their_rates_match_seqeval(parity: Path) -> None:
    for case in entity_cases(parity).values():
        counts = EntityCounts()
        for part in ("truth", "prediction"):
            spans = [[list(span) for span in entities(tags)] for tags in case[part]]
            assert spans == case[f"entities_{part}"]
        for truth, prediction in zip(case["truth"], case["prediction"], strict=True):
            counts.add(entities(truth), entities(prediction))
        wanted = case["default"]
        assert counts.total() == pytest.approx(rates_of(wanted, "f1"), abs=1e-12)
        kinds = {kind for kind in wanted["per_type"] if not kind.endswith(" avg")}
        by_type = counts.by_type()
        assert set(by_type) == kinds
        for kind in kinds:
            stored = wanted["per_type"][kind]
            assert by_type[kind] == pytest.approx(rates_of(stored, "f1-score"), abs=1e-12)
            assert counts.true[kind] == stored["support"]


def test_strict_entities_match_seqeval(parity: Path) -> None:
    checked = 0
    schemes: tuple[Scheme, ...] = ("IOB2", "IOBES")
    for case in entity_cases(parity).values():
        for scheme in schemes:
            if f"strict_{scheme}" not in case:
                continue
            counts = EntityCounts()
            for truth, prediction in zip(case["truth"], case["prediction"], strict=True):
                counts.add(strict_entities(truth, scheme), strict_entities(prediction, scheme))
            wanted = rates_of(case[f"strict_{scheme}"], "f1")
            assert counts.total() == pytest.approx(wanted, abs=1e-12)
            checked += 1
    assert checked >= 6


def rates_of(stored: dict[str, float], f1: str) -> tuple[float, float, float]:
    return stored["precision"], stored["recall"], stored[f1]


def test_middle_tag_of_bmes_is_an_inner_tag() -> None:
    tags = ["B-NAME", "M-NAME", "E-NAME", "S-CONT", "O", "M-ORG"]
    assert entities(tags) == [Entity("NAME", 0, 2), Entity("CONT", 3, 3), Entity("ORG", 5, 5)]
    assert strict_entities(tags, "IOBES") == [Entity("NAME", 0, 2), Entity("CONT", 3, 3)]


def answers_file(parity: Path) -> dict[str, Any]:
    return json.loads((parity / "scoring_cmrc.json").read_text())


@pytest.mark.parametrize("variant", ["official", "ascend"])
def test_answers_score_as_in_both_cmrc_scripts(parity: Path, variant: Variant) -> None:
    content = answers_file(parity)
    f1 = em = 0.0
    for item in content["items"]:
        answers, prediction = item["answers"], item["prediction"]
        cut = [segments(text, variant) for text in [*answers, prediction]]
        assert cut == item[f"{variant}_segments"], item["id"]
        score = answer_f1(answers, prediction, variant)
        assert score == pytest.approx(item[f"{variant}_f1"], abs=1e-12), item["id"]
        assert exact_match(answers, prediction) == bool(item[f"{variant}_em"]), item["id"]
        f1, em = f1 + score, em + exact_match(answers, prediction)
    total = content[f"{variant}_total"]
    assert 100 * f1 / total["total"] == pytest.approx(total["f1"], abs=1e-9)
    assert 100 * em / total["total"] == pytest.approx(total["em"], abs=1e-9)


def test_predictions_are_aligned_to_characters_as_in_the_original(parity: Path) -> None:
    for case in answers_file(parity)["get_final_text"]:
        for name, lower in (("lower", True), ("cased", False)):
            words = BasicWords(lower, lower)
            assert realigned(case["prediction"], case["original"], words) == case[name]


def test_text_with_lost_characters_is_not_realigned() -> None:
    assert realigned("c", "a\u200bb c", BasicWords()) == "a\u200bb c"
    assert realigned("c", "ab c", BasicWords()) == "c"


def test_best_spans_match_the_original(parity: Path) -> None:
    case = answers_file(parity)["best_indexes"]
    logits = np.array(case["logits"])
    assert best_indexes(logits, case["n"]) == case["indexes"]
    assert best_indexes(np.array([1.0, 3.0, 3.0]), 2) == [1, 2]
