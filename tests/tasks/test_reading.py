"""Answers in passages: loss, the best answer over windows, scores."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from jumar.data.samples import SampleKey
from jumar.data.text.reading_files import Answer, Question, Reading
from jumar.data.text.reading_set import ReadingData, ReadingWindows, reading_set
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.tasks.reading import Extracted, ReadingTask, best_answers, window_answers
from jumar.tasks.scoring.spans import best_spans
from tests.data.text.vocabularies import PIECES
from tests.tasks.means import means

TOKENIZER = Tokenizer(Vocabulary(PIECES))


class Pointing(nn.Module):
    """A network that points at some pieces: start and end, with a height each."""

    def __init__(self, **heights: tuple[float, float]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(len(PIECES), 2))
        for piece, height in heights.items():
            self.table.data[PIECES.index(piece)] = torch.tensor(height)

    def forward(
        self, input_ids: torch.Tensor, segment_ids: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        del segment_ids
        return self.table[input_ids[:, : int(mask.sum(dim=1).max())]]


def windows(
    *questions: tuple[str, int, tuple[str, ...]], passages: tuple[str, ...]
) -> ReadingWindows:
    reading = Reading(passages=list(passages))
    for number, (text, passage, answers) in enumerate(questions):
        listed = [Answer(answer, passages[passage].find(answer)) for answer in answers]
        reading.questions.append(Question(f"q{number}", text, passage, listed, ""))
    data = ReadingData(max_seq_length=10, doc_stride=3, max_query_length=2, n_best=4)
    return ReadingWindows(reading, tokenizer=TOKENIZER, data=data)


def task_for(network: nn.Module, made: ReadingWindows) -> ReadingTask:
    return ReadingTask(  # type: ignore[arg-type]
        network,
        train_data=reading_set(made, training=True),
        eval_data=reading_set(made, training=False),
    )


def scored(task: ReadingTask, batches: list[list[int]]) -> dict[str, float]:
    assert task.eval_data is not None
    sums: dict[str, torch.Tensor] = {}
    for numbers in batches:
        batch = task.eval_data.fetch([SampleKey(0, number) for number in numbers]).batch
        with torch.no_grad():
            part = task.evaluate_batch(batch)
        answers = [sums[name] for name in ("answers",) if name in sums]
        total = {
            name: value + sums.get(name, 0) for name, value in part.items() if name != "answers"
        }
        sums = {**total, "answers": torch.cat([*answers, part["answers"]])}
    return task.summarize(sums)


MADE = windows(
    ("x y", 0, ("g h",)),
    ("z", 1, ("A B", "a")),
    ("y", 1, ("zz",)),
    passages=("a b c d e f g h", "A B c d"),
)


def test_best_answer_of_all_windows_counts() -> None:
    # In the first window b is the best there is; g and h in the second one are better.
    network = Pointing(b=(1.0, 1.0), g=(4.0, 0.0), h=(0.0, 4.0))
    task = task_for(network, MADE)
    assert len(MADE) == 4
    scores = scored(task, [[0, 1, 2, 3]])
    assert scores == pytest.approx(scored(task, [[3, 1], [0], [2]]))
    # `g h` is right; of "A B" only B was found; of `zz` nothing.
    assert scores["em"] == pytest.approx(100 / 3)
    assert scores["f1"] == pytest.approx(100 * (1 + 2 / 3 + 0) / 3)
    # Without its blank `ab` shares one of three characters there.
    assert scores["f1_ascend"] == pytest.approx(100 * (1 + 2 / 4 + 0) / 3)


def test_loss_is_the_mean_of_start_and_end_within_the_passage() -> None:
    network = Pointing(g=(4.0, 0.0), x=(50.0, 50.0))
    task = task_for(network, MADE)
    batch = task.train_data.fetch([SampleKey(0, 1)]).batch
    assert (batch["start"].item(), batch["end"].item()) == (7, 8)
    # Six places count: [CLS] and five pieces. The question's x would outweigh them all.
    start = -math.log(math.exp(4) / (math.exp(4) + 5))
    expected = (start + math.log(6)) / 2
    assert means(task.objectives[0], batch)["loss"].item() == pytest.approx(expected, rel=1e-5)


def test_answers_are_verbatim_spans_of_the_passage() -> None:
    network = Pointing(a=(3.0, 0.0), b=(0.0, 2.0), c=(0.0, 1.0))
    logits = network(
        torch.tensor([[PIECES.index(p) for p in ("[CLS]", "z", "[SEP]", "a", "b", "c", "d")]]),
        torch.zeros(1, 7),
        torch.ones(1, 7),
    )
    answers = window_answers(MADE, 2, logits[0].detach().numpy())
    assert (answers[0].text, answers[0].begin, answers[0].end) == ("A B", 0, 3)
    assert answers[0].score == pytest.approx(5)
    assert answers[1].text == "A B c"


def test_answers_use_the_best_allowed_positions() -> None:
    start, end = np.array([9.0, 5, 1, 0, 4]), np.array([9.0, 0, 6, 7, 1])
    inside = np.array([False, True, True, True, True])
    begins = np.array([False, True, True, True, False])
    guesses = best_spans(start, end, may_begin=begins, may_end=inside, n_best=3, max_length=2)
    # Of the three best places each: starts 1 (0 and 4 are not allowed), ends 3 and 2.
    assert [(guess.first, guess.last, guess.score) for guess in guesses] == [(1, 2, 11.0)]
    guesses = best_spans(start, end, may_begin=begins, may_end=inside, n_best=5, max_length=3)
    assert [(guess.first, guess.last) for guess in guesses][:3] == [(1, 3), (1, 2), (2, 3)]
    assert all(guess.first <= guess.last < guess.first + 3 for guess in guesses)


def test_each_text_is_listed_once_with_its_probability() -> None:
    answers = [
        Extracted(text="b", begin=5, end=6, score=1.0),
        Extracted(text="a", begin=0, end=1, score=2.0),
        Extracted(text="a", begin=3, end=4, score=1.5),
        Extracted(text="c", begin=7, end=8, score=0.0),
    ]
    best = best_answers(answers, 2)
    assert [(answer.text, answer.begin) for answer, _ in best] == [("a", 0), ("b", 5)]
    share = math.exp(2) / (math.exp(2) + math.exp(1))
    assert [value for _, value in best] == pytest.approx([share, 1 - share])
    assert best_answers([], 3) == []


def test_window_is_scored_by_its_best_answer_in_passage_characters() -> None:
    task = task_for(Pointing(a=(3.0, 0.0), b=(1.0, 2.0), g=(4.0, 0.5), h=(0.0, 4.0)), MADE)
    assert task.eval_data is not None
    batch = task.eval_data.fetch([SampleKey(0, number) for number in range(4)]).batch
    with torch.no_grad():
        result = task.evaluate_batch(batch)
    assert result["count"].item() == 4
    assert result["answers"].tolist() == [
        [0, 0, 3, 5.0],  # "a b" in the first window
        [0, 12, 15, 8.0],  # "g h" in the second
        [1, 0, 3, 5.0],
        [2, 0, 3, 5.0],
    ]
    # Windows without an answer add no row, and questions without one count as wrong.
    sums = {**result, "answers": result["answers"][[0, 2]], "count": torch.tensor(8.0)}
    scores = task.summarize({name: value.double() for name, value in sums.items()})
    assert scores["em"] == pytest.approx(100 / 3)
    assert scores["loss"] == pytest.approx(result["loss"].item() / 8)


def test_first_window_of_equally_good_answers_counts() -> None:
    task = task_for(Pointing(), MADE)
    rows = [[1, 0, 3, 2.0], [1, 4, 5, 2.0], [1, 4, 5, 1.0]]
    sums = {"answers": torch.tensor(rows).double(), "loss": torch.tensor(1.0)}
    metrics = task.summarize({**sums, "count": torch.tensor(1.0)})
    assert metrics["em"] == pytest.approx(100 / 3)
    later = [rows[1], rows[0]]
    metrics = task.summarize(
        {**sums, "answers": torch.tensor(later).double(), "count": torch.tensor(1.0)}
    )
    assert metrics["em"] == 0


def test_logits_outside_the_passage_are_lowered_by_ten_thousand() -> None:
    network = Pointing(x=(50.0, 50.0), g=(4.0, 1.0))
    task = task_for(network, MADE)
    batch = task.train_data.fetch([SampleKey(0, 1)]).batch
    logits = task.objectives[0].logits(batch)
    plain = network(batch["input_ids"], batch["segment_ids"], batch["input_mask"])
    assert logits.shape == plain.shape
    outside = (batch["span_mask"][:, : plain.shape[1], None] == 0).float()
    assert 0 < outside.sum() < outside.numel()
    torch.testing.assert_close(logits, plain - 10_000 * outside)
