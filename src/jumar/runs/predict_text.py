"""Predict labels, entities or answers for new texts with a fine-tuned BERT."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from jumar.data.samples import Arrays, SampleKey
from jumar.data.text.entity_set import pieces_of
from jumar.data.text.numbered_lines import Skipping, line_of, numbered_lines
from jumar.data.text.reading_files import Question, Reading, read_questions
from jumar.data.text.reading_set import ReadingWindows
from jumar.data.text.sentence_files import PLAIN, Sentence, read_plain, read_sentences
from jumar.data.text.sentence_set import Sentences
from jumar.data.text.sequences import frame_of
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.recipes.bert_tasks import BertTaskRecipe, ClassifyRecipe, EntityRecipe, ReadingRecipe
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.ds_cnn import KeywordRecipe
from jumar.recipes.recipe import Recipe
from jumar.recipes.stored import stored_recipe
from jumar.recipes.trained import Trained
from jumar.runs.open_trained import TrainedRequest, open_trained, placed_recipe
from jumar.runs.predict import Guess, Unreadable, not_a_classifier
from jumar.tasks.reading import best_answers, window_answers
from jumar.tasks.scoring.entities import entities
from jumar.training.run_directory import RunDirectory

R = TypeVar("R", bound=BertTaskRecipe)

_BATCH_SIZE = 32
_SKIP_OPTION = "--skip-corrupt N"
_EXAMPLES: Sequence[tuple[type[Recipe], str]] = (
    (KeywordRecipe, "clip.wav"),
    (ClassificationRecipe, "image.jpg"),
    (ReadingRecipe, "questions.json"),
    (BertTaskRecipe, "texts.txt"),
)
"""Names of files that runs of these recipes read."""


@dataclass(frozen=True, kw_only=True)
class TextRequest:
    """The texts and the trained network.

    Attributes:
        trained: The run and its weights.
        files: Files of texts.
        texts: Texts of the command line.
        pair: The second text of each of `texts`, or the question about them.
        skip_corrupt: Unreadable files or rows to tolerate.
    """

    trained: TrainedRequest
    files: Sequence[Path] = ()
    texts: Sequence[str] = ()
    pair: str | None = None
    skip_corrupt: int = 0


@dataclass(frozen=True, kw_only=True)
class LabelledText:
    """A text or a pair, and all labels, the most probable first."""

    where: str
    text: str
    pair: str | None
    guesses: Sequence[Guess]


class EntityInText(NamedTuple):
    """An entity with its character range and the probability of its least probable tag."""

    kind: str
    text: str
    begin: int
    end: int
    probability: float


@dataclass(frozen=True, kw_only=True)
class TaggedText:
    """A text and its entities."""

    where: str
    text: str
    entities: Sequence[EntityInText]


class AnswerInText(NamedTuple):
    """An answer with its character range in the passage and its probability among the answers."""

    text: str
    begin: int
    end: int
    probability: float


@dataclass(frozen=True, kw_only=True)
class AnsweredQuestion:
    """A question and its answers, the most probable first; empty if none was found."""

    where: str
    number: str
    question: str
    answers: Sequence[AnswerInText]


TextResult = LabelledText | TaggedText | AnsweredQuestion


def reads_text(run: Path, imports: tuple[str, ...] = ()) -> bool:
    """Return whether the input of a run's network is text.

    Raises:
        UserError: There is no such run.
    """
    return isinstance(stored_recipe(RunDirectory(run), imports)[2], BertTaskRecipe)


def example_input(run: Path, imports: tuple[str, ...] = ()) -> str:
    """Return the name of a file as a run's network could read it, for messages.

    Raises:
        UserError: There is no such run, or it predicts nothing for files.
    """
    name, _, recipe = stored_recipe(RunDirectory(run), imports)
    for kinds, example in _EXAMPLES:
        if isinstance(recipe, kinds):
            return example
    raise not_a_classifier(name, run)


def text_results(
    request: TextRequest, say: Callable[[str], None] = lambda _: None
) -> Iterator[TextResult | Unreadable]:
    """Yield the prediction for each text, or the reason why there are none for a file.

    Texts that are longer than the training samples are cut, as in training, but entities are
    searched for in the entire text, and answers in the entire passage.

    Args:
        request: The texts and the run.
        say: Prints a line about texts that were cut, and rows that were skipped.

    Raises:
        UserError: There is no such run, or the question about a text is missing.
    """
    trained = open_trained(request.trained)
    with closing(trained.policy):
        recipe = placed_recipe(trained, request.trained, say)
        assert isinstance(recipe, BertTaskRecipe)
        predictor = _predictor(recipe, trained, say)
        if request.texts:
            yield from predictor.texts(request.texts, request.pair)
        for path in request.files:
            try:
                yield from predictor.file(path, Skipping(request.skip_corrupt, say, _SKIP_OPTION))
            except UserError as error:
                yield Unreadable(path=path, error=error)


class _Predictor(ABC, Generic[R]):
    """Base class of the three predictors: the network and its tokenizer."""

    def __init__(self, recipe: R, trained: Trained, say: Callable[[str], None]) -> None:
        self.recipe, self.trained, self.say = recipe, trained, say
        self.tokenizer: Tokenizer = recipe.tokenizer()
        self.frame = frame_of(self.tokenizer.vocabulary, recipe.data.max_seq_length)

    @abstractmethod
    def texts(self, texts: Sequence[str], pair: str | None) -> Iterator[TextResult]:
        """Yield the results for texts of the command line."""

    @abstractmethod
    def file(self, path: Path, skipping: Skipping) -> Iterator[TextResult]:
        """Yield the results for a file."""

    def logits(
        self, samples: Sequence[Mapping[str, NDArray[np.generic]]]
    ) -> Iterator[torch.Tensor]:
        """Yield the logits of each sample, float32 on the CPU."""
        names = ("input_ids", "segment_ids", "input_mask")
        with torch.inference_mode():
            for first in range(0, len(samples), _BATCH_SIZE):
                chunk = samples[first : first + _BATCH_SIZE]
                batch = (
                    torch.from_numpy(np.stack([sample[name] for sample in chunk])) for name in names
                )
                with self.trained.policy.forward():
                    logits = self.trained.model(
                        *(tensor.to(self.trained.device.torch) for tensor in batch)
                    )
                yield from logits.float().cpu()


class _Labelling(_Predictor[ClassifyRecipe]):
    def texts(self, texts: Sequence[str], pair: str | None) -> Iterator[TextResult]:
        yield from self._results([Sentence(text, pair, "", "--text") for text in texts])

    def file(self, path: Path, skipping: Skipping) -> Iterator[TextResult]:
        if path.suffix == PLAIN:
            sentences = read_plain(path)
        else:
            sentences = list(read_sentences(path, self.recipe.data, skipping, labelled=False))
        for has_pair in (False, True):
            # An empty second text is encoded differently from a missing one.
            yield from self._results(
                [sentence for sentence in sentences if (sentence.second is not None) == has_pair]
            )

    def _results(self, sentences: Sequence[Sentence]) -> Iterator[TextResult]:
        samples = Sentences(
            sentences, [0] * len(sentences), tokenizer=self.tokenizer, frame=self.frame
        )
        if samples.truncated:
            self.say(f"{samples.truncated} of {len(samples)} cut to {self.frame.length} tokens")
        arrays: list[Arrays] = [
            samples.map(item, item, SampleKey(0, item)) for item in range(len(samples))
        ]
        for sentence, logits in zip(sentences, self.logits(arrays), strict=True):
            values, indices = logits.softmax(dim=0).sort(descending=True, stable=True)
            yield LabelledText(
                where=sentence.where,
                text=sentence.first,
                pair=sentence.second,
                guesses=[
                    Guess(label=self.recipe.data.labels[index], probability=value)
                    for value, index in zip(values.tolist(), indices.tolist(), strict=True)
                ],
            )


class _Tagging(_Predictor[EntityRecipe]):
    def texts(self, texts: Sequence[str], pair: str | None) -> Iterator[TextResult]:
        if pair is not None:
            raise UserError("entities are found in single texts", where="--pair", todo="Omit it.")
        for text in texts:
            yield self._result("--text", text)

    def file(self, path: Path, skipping: Skipping) -> Iterator[TextResult]:
        del skipping
        for number, line in numbered_lines(path):
            if line.strip():
                yield self._result(line_of(path, number), line)

    def _result(self, where: str, text: str) -> TaggedText:
        spans = self._tokens(text)
        tags: list[str] = []
        probabilities: list[float] = []
        rows, firsts = self._rows([text[start:end] for start, end in spans])
        samples = [self.frame.arrays(row) for row in rows]
        for positions, logits in zip(firsts, self.logits(samples), strict=True):
            values, indices = logits[positions].softmax(dim=1).max(dim=1)
            tags += [self.recipe.data.labels[index] for index in indices.tolist()]
            probabilities += values.tolist()
        found_entities: list[EntityInText] = []
        for kind, first, last in entities(tags):
            start, end = spans[first][0], spans[last][1]
            probability = min(probabilities[first : last + 1])
            found_entities.append(EntityInText(kind, text[start:end], start, end, probability))
        return TaggedText(where=where, text=text, entities=found_entities)

    def _tokens(self, text: str) -> list[tuple[int, int]]:
        """Return the character range of each token, split as in the training data."""
        if self.recipe.data.new_texts == "words":
            words = self.tokenizer.rules.words.placed(text)
            return [(word.positions[0], word.positions[-1] + 1) for word in words]
        return [
            (position, position + 1)
            for position, character in enumerate(text)
            if not character.isspace()
        ]

    def _rows(self, tokens: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Split a text into samples; returns their pieces and the position of each token."""
        max_pieces = self.frame.length - 2
        rows: list[list[int]] = []
        firsts: list[list[int]] = []
        for token in tokens:
            pieces = pieces_of(token, self.tokenizer)[:max_pieces]
            if not rows or len(rows[-1]) + len(pieces) > max_pieces:
                rows.append([])
                firsts.append([])
            firsts[-1].append(len(rows[-1]) + 1)
            rows[-1] += pieces
        return rows, firsts


class _Answering(_Predictor[ReadingRecipe]):
    def texts(self, texts: Sequence[str], pair: str | None) -> Iterator[TextResult]:
        if pair is None:
            raise UserError(
                "no question about the text",
                where="--text",
                todo="For instance: --text PASSAGE --pair QUESTION",
            )
        questions = [
            Question(str(number), pair, number, (), "--text") for number in range(len(texts))
        ]
        yield from self._results(Reading(list(texts), questions))

    def file(self, path: Path, skipping: Skipping) -> Iterator[TextResult]:
        del skipping
        yield from self._results(read_questions(path))

    def _results(self, reading: Reading) -> Iterator[TextResult]:
        windows = ReadingWindows(reading, tokenizer=self.tokenizer, data=self.recipe.data)
        for number, group in groupby(
            range(len(windows)), key=lambda window: windows.windows[window].question
        ):
            question, question_windows = reading.questions[number], list(group)
            samples = [
                windows.map(window, window, SampleKey(0, window)) for window in question_windows
            ]
            answers = [
                answer
                for window, logits in zip(question_windows, self.logits(samples), strict=True)
                for answer in window_answers(windows, window, logits.numpy())
            ]
            yield AnsweredQuestion(
                where=question.where,
                number=question.number,
                question=question.text,
                answers=[
                    AnswerInText(answer.text, answer.begin, answer.end, probability)
                    for answer, probability in best_answers(answers, self.recipe.data.n_best)
                ],
            )


def _predictor(
    recipe: BertTaskRecipe, trained: Trained, say: Callable[[str], None]
) -> _Predictor[Any]:
    if isinstance(recipe, ClassifyRecipe):
        return _Labelling(recipe, trained, say)
    if isinstance(recipe, EntityRecipe):
        return _Tagging(recipe, trained, say)
    assert isinstance(recipe, ReadingRecipe)
    return _Answering(recipe, trained, say)
