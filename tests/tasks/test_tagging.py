"""Entities: loss over tagged tokens, scores of whole entities."""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import nn
from torch.nn import functional

from jumar.data.text.entity_set import UNSCORED
from jumar.tasks.scoring.entities import Scheme
from jumar.tasks.tagging import TaggingTask
from tests.tasks.means import means

LABELS = ("B-ORG", "B-PER", "I-ORG", "I-PER", "O")


class Said(nn.Module):
    """A network that gives each piece the tag of its number, with a margin."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.tags = tags
        self.margin = nn.Parameter(torch.tensor(2.0))

    def forward(
        self, input_ids: torch.Tensor, segment_ids: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        del segment_ids
        length = int(mask.sum(dim=1).max())
        hot = functional.one_hot(input_ids[:, :length] % self.tags, self.tags)
        return self.margin * hot.float() * mask[:, :length, None]


def task_for(labels: Sequence[str] = LABELS, scheme: Scheme | None = None) -> TaggingTask:
    return TaggingTask(
        Said(len(labels)),
        labels=labels,
        train_data=None,  # type: ignore[arg-type]
        eval_data=None,
        scheme=scheme,
    )


def batch(
    *sentences: tuple[Sequence[str], Sequence[str]],
    length: int = 9,
    labels: Sequence[str] = LABELS,
) -> dict[str, torch.Tensor]:
    """Sentences of true and predicted tags; `-` is a piece that is not scored."""
    shape = (len(sentences), length)
    made = {name: torch.zeros(shape, dtype=torch.int64) for name in ("input_ids", "segment_ids")}
    made |= {"input_mask": torch.zeros(shape, dtype=torch.int64)}
    made |= {"label": torch.full(shape, UNSCORED)}
    for row, (truth, message) in enumerate(sentences):
        made["input_mask"][row, : len(truth) + 2] = 1
        for place, (true, tag) in enumerate(zip(truth, message, strict=True), start=1):
            made["input_ids"][row, place] = labels.index(tag)
            if true != "-":
                made["label"][row, place] = labels.index(true)
    return made


FIRST = (
    ["B-PER", "I-PER", "-", "O", "B-ORG"],
    ["B-PER", "I-PER", "B-ORG", "O", "B-PER"],
)
SECOND = (["O", "B-ORG", "I-ORG"], ["B-PER", "B-ORG", "O"])


def test_loss_is_the_mean_over_tagged_tokens() -> None:
    task = task_for()
    made = batch(FIRST, SECOND)
    logits = task.model(made["input_ids"], made["segment_ids"], made["input_mask"])
    scored = made["label"][:, : logits.shape[1]]
    expected = functional.cross_entropy(
        logits[scored != UNSCORED], scored[scored != UNSCORED]
    ).item()
    assert means(task.objectives[0], made)["loss"].item() == pytest.approx(expected)
    wider = batch(FIRST, SECOND, length=20)
    assert means(task.objectives[0], wider)["loss"].item() == pytest.approx(expected)


def test_whole_entities_are_scored_over_batches_of_any_size() -> None:
    task = task_for()
    parts = [task.evaluate_batch(batch(each)) for each in (FIRST, SECOND)]
    sums = {name: parts[0][name].double() + parts[1][name].double() for name in parts[0]}
    together = {
        name: value.double() for name, value in task.evaluate_batch(batch(FIRST, SECOND)).items()
    }
    scores = task.summarize(sums)
    assert scores == pytest.approx(task.summarize(together))
    # True: PER, ORG, ORG. Predicted: PER, PER, PER, ORG, of which one PER is right.
    assert scores["precision"] == pytest.approx(100 / 4)
    assert scores["recall"] == pytest.approx(100 / 3)
    # Tokens: 5 true ones inside, 5 predicted, 3 right.
    assert scores["token_f1"] == pytest.approx(100 * 3 / 5)
    rows = {row[0]: row[1:] for row in task.score_tables(sums)[0].rows}
    assert rows == {
        "ORG": ["0.00", "0.00", "0.00", "2"],
        "PER": ["33.33", "100.00", "50.00", "1"],
    }
    assert sums["count"].item() == 2
    assert sums["tokens"].item() == 7


def test_table_lists_rates_by_type_and_the_loss_is_per_token() -> None:
    task = task_for()
    assert task.kinds == ["ORG", "PER"]
    assert task.by_character is True
    sums = {
        name: value.double() for name, value in task.evaluate_batch(batch(FIRST, SECOND)).items()
    }
    assert sums["entities"].tolist() == [[0, 1, 2], [1, 3, 1]]
    confusion = torch.zeros(5, 5)
    for true, message in zip(FIRST[0] + SECOND[0], FIRST[1] + SECOND[1], strict=True):
        if true != "-":
            confusion[LABELS.index(true), LABELS.index(message)] += 1
    assert torch.equal(sums["confusion"].float(), confusion)
    (table,) = task.score_tables(sums)
    assert table.title == "entities"
    assert list(table.header) == ["type", "precision %", "recall %", "f1 %", "entities"]
    assert table.rows == [
        ["ORG", "0.00", "0.00", "0.00", "2"],
        ["PER", "33.33", "100.00", "50.00", "1"],
    ]
    right, wrong = math.log(math.exp(2) + 4) - 2, math.log(math.exp(2) + 4)
    scores = task.summarize(sums)
    # 1 of 4 predicted entities is right, and 1 of 3 true ones; 4 of 7 tokens are.
    assert scores == pytest.approx(
        {
            "f1": 100 * 2 / 7,
            "precision": 25.0,
            "recall": 100 / 3,
            "token_f1": 60.0,
            "loss": (4 * right + 3 * wrong) / 7,
        }
    )
    none = {name: torch.zeros_like(value) for name, value in sums.items()}
    assert set(task.summarize(none).values()) == {0.0}
    assert task.score_tables(none)[0].rows == []


@pytest.mark.parametrize(
    ("scheme", "rows", "title"),
    [
        # True: PER, ORG, and an ORG that an inner tag begins. Predicted: the first PER, half of
        # the ORG, a PER that an inner tag begins, and the second ORG.
        (
            None,
            [["ORG", "50.00", "50.00", "50.00", "2"], ["PER", "50.00", "100.00", "66.67", "1"]],
            "entities",
        ),
        (
            "IOB2",
            [["ORG", "0.00", "0.00", "0.00", "1"], ["PER", "100.00", "100.00", "100.00", "1"]],
            "entities (strict, IOB2)",
        ),
    ],
)
def test_strict_scores_count_only_what_follows_the_scheme_in_truth_and_prediction(
    scheme: Scheme | None, rows: list[list[str]], title: str
) -> None:
    task = task_for(scheme=scheme)
    truth = ["B-PER", "I-PER", "B-ORG", "I-ORG", "O", "I-ORG"]
    predicted = ["B-PER", "I-PER", "B-ORG", "I-PER", "O", "I-ORG"]
    scored = task.evaluate_batch(batch((truth, predicted)))
    sums = {name: value.double() for name, value in scored.items()}
    (table,) = task.score_tables(sums)
    assert table.rows == rows
    assert table.title == title
    # Single tags have no scheme.
    assert task.summarize(sums)["token_f1"] == pytest.approx(100 * 4 / 5)


def test_strict_scores_of_iobes_need_the_last_tag() -> None:
    labels = ("B-A", "E-A", "I-A", "O", "S-A")
    sentence = (["B-A", "I-A", "E-A", "S-A"], ["B-A", "I-A", "I-A", "S-A"])
    made = batch(sentence, labels=labels)
    for scheme, right in ((None, 2), ("IOBES", 1)):
        sums = task_for(labels, scheme).evaluate_batch(made)
        assert sums["entities"].tolist() == [[right, right, 2]]
