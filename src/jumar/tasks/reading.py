"""Reading comprehension: find the start and end of the answer to a question in a passage.

Original: run_reading.py of Ascend's Bert-base_ID0060, which is CMRC's baseline. A window without
the answer learns to point at [CLS], and all logits outside of [CLS] and the passage are reduced by
10,000. The answer to a question is the best among all its windows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import Batch
from jumar.data.text.reading_set import ReadingWindows
from jumar.models.bert.heads import BertForSpans
from jumar.tasks.encoder_objective import EncoderObjective
from jumar.tasks.scoring.answers import answer_f1, exact_match
from jumar.tasks.scoring.spans import best_spans
from jumar.tasks.task import Headline, Task

_LOGIT_REDUCTION = 10_000.0


class ReadingObjective(EncoderObjective[BertForSpans]):
    """The mean of the cross-entropies of an answer's start and end."""

    name = "reading"

    def logits(self, batch: Batch) -> Tensor:
        """Return the logits of start and end, float32 [N, length of the longest sample, 2]."""
        logits = super().logits(batch)
        allowed = batch["span_mask"][:, : logits.shape[1], None].to(logits.dtype)
        return logits + (allowed - 1) * _LOGIT_REDUCTION

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of a batch; see `reading_set`."""
        return {"loss": span_loss(self.logits(batch), batch)}


def span_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return the mean of both cross-entropies, summed over the samples."""
    start, end = (
        functional.cross_entropy(logits[:, :, column], batch[name], reduction="sum")
        for column, name in enumerate(("start", "end"))
    )
    return (start + end) / 2


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """An answer and its position.

    Attributes:
        begin: Position of the first character in the passage.
        end: Position after the last character.
        score: Sum of the logits of start and end.
    """

    text: str
    begin: int
    end: int
    score: float


class ReadingTask(Task):
    """A network that finds answers in passages.

    Args:
        network: Pieces in, logits of start and end out.
        train_data: Windows to learn from.
        eval_data: Windows to score on.
    """

    name = "reading"
    headline = Headline(name="f1", unit="%", higher_is_better=True)
    gathered = ("answers",)

    def __init__(
        self,
        network: BertForSpans,
        *,
        train_data: KeyedSet[ReadingWindows],
        eval_data: KeyedSet[ReadingWindows] | None,
    ) -> None:
        self.model = network
        self.train_data, self.eval_data = train_data, eval_data
        self._scored = None if eval_data is None else eval_data.kind
        self._objective = ReadingObjective(network)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss, and a row for the best answer of each window that has any: question,
        first character, end, score.
        """
        assert self._scored is not None
        logits = self._objective.logits(batch)
        rows: list[list[float]] = []
        for number, window in zip(batch["window"].tolist(), logits.cpu().numpy(), strict=True):
            question = self._scored.windows[number].question
            for answer in window_answers(self._scored, number, window)[:1]:
                rows.append([question, answer.begin, answer.end, answer.score])
        return {
            "count": torch.tensor(len(logits), device=logits.device),
            "answers": torch.tensor(rows, dtype=torch.float64).view(-1, 4),
            "loss": span_loss(logits, batch),
        }

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return `f1` and exact match (`em`) of CMRC's official script and `f1_ascend` of Ascend's
        copy, in percent, and the mean `loss` of a window.
        """
        assert self._scored is not None
        reading = self._scored.reading
        best: dict[int, tuple[float, str]] = {}
        for question, begin, end, score in sums["answers"].tolist():
            entry = reading.questions[int(question)]
            text = reading.passages[entry.passage][int(begin) : int(end)]
            if int(question) not in best or score > best[int(question)][0]:
                best[int(question)] = score, text
        totals = dict.fromkeys(("f1", "em", "f1_ascend"), 0.0)
        for question, (_, text) in best.items():
            answers = [answer.text for answer in reading.questions[question].answers]
            totals["f1"] += answer_f1(answers, text)
            totals["em"] += exact_match(answers, text)
            totals["f1_ascend"] += answer_f1(answers, text, "ascend")
        percentages = {name: 100 * total / len(reading.questions) for name, total in totals.items()}
        return {**percentages, "loss": sums["loss"].item() / sums["count"].item()}


def window_answers(
    windows: ReadingWindows, number: int, logits: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> list[Extracted]:
    """Return the candidate answers of a window, best first.

    Args:
        windows: All windows.
        number: Number of the window.
        logits: Logits of start and end, [length, 2].
    """
    window = windows.windows[number]
    question = windows.reading.questions[window.question]
    passage, text = windows.passages[question.passage], windows.reading.passages[question.passage]
    offset = windows.offset(window)
    in_passage = np.zeros(len(logits), dtype=bool)
    in_passage[offset : offset + window.length] = True
    may_begin = in_passage.copy()
    may_begin[in_passage] = windows.has_most_context(number)
    guesses = best_spans(
        logits[:, 0],
        logits[:, 1],
        may_begin=may_begin,
        may_end=in_passage,
        n_best=windows.data.n_best,
        max_length=windows.data.max_answer_length,
    )
    answers: list[Extracted] = []
    for guess in guesses:
        first, last = (position - offset + window.begin for position in (guess.first, guess.last))
        begin, end = int(passage.begins[first]), int(passage.ends[last])
        answers.append(Extracted(text=text[begin:end], begin=begin, end=end, score=guess.score))
    return answers


def best_answers(answers: Sequence[Extracted], count: int) -> list[tuple[Extracted, float]]:
    """Return the best distinct answers from all windows of a question, with the softmax of their
    scores.
    """
    best_by_text: dict[str, Extracted] = {}
    for answer in sorted(answers, key=lambda answer: -answer.score):
        if len(best_by_text) < count:
            best_by_text.setdefault(answer.text, answer)
    scores = torch.tensor([answer.score for answer in best_by_text.values()], dtype=torch.float64)
    return list(zip(best_by_text.values(), scores.softmax(dim=0).tolist(), strict=True))
