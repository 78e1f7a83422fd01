"""Fine-tuning of BERT and NEZHA: sentence classification, entities, reading comprehension.

Papers: J. Devlin et al., https://arxiv.org/abs/1810.04805; J. Wei et al., NEZHA,
https://arxiv.org/abs/1909.00204. Originals: run_classifier.py, run_ner.py and run_reading.py of
Ascend's Bert-base_ID0060, which come from google-research/bert and CMRC's baseline.

Data: see docs/text-tasks.md. Weights to start from: a run or a .safetensors file, for instance
`jumar weights import bert CHECKPOINT --to bert.safetensors`, as `transfer.start_from`; the network
must have the same size, and `model.vocabulary` is the file with which they were trained.
Expected of BERT-base Chinese (ymcui/Chinese-BERT-wwm, best of dev): XNLI 77.8 %, LCQMC 89.4 %,
ChnSentiCorp 94.7 %, CMRC 2018 EM 65.5 and F1 84.5.

Choices where the originals have a pitfall, or disagree with others:

- The labels are sorted and stored; the original numbers them in the order of a Python set.
- The loss of entities is the mean over tagged tokens; the original sums it over all tokens of a
  batch, including padding, and has separate classes for [CLS], [SEP] and pieces after the first.
- Whole entities are scored (`f1`), also strictly (`data.scoring`); the original's score of single
  tokens is `token_f1`.
- CMRC is scored as in the official script (`f1`, `em`); the original's copy, which mistakes Latin
  letters and digits for Chinese characters, is `f1_ascend`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from torch import nn

from jumar.data.text.entity_set import EntityData, EntitySets, open_entity_sets
from jumar.data.text.labelled_parts import LabelledData, TextData
from jumar.data.text.reading_set import ReadingData, open_reading_sets
from jumar.data.text.sentence_files import SentenceData
from jumar.data.text.sentence_set import open_sentence_sets
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.models.bert.heads import BertForClassification, BertForSpans, BertForTagging
from jumar.models.bert.names import tf_names
from jumar.models.bert.network import BertSize
from jumar.models.tf_layout import TfNames
from jumar.recipes.bert_model import (
    EncoderRecipe,
    bert_size,
    model_tokenizer,
    with_vocabulary,
)
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.tasks.class_weights import MEANING, class_weights
from jumar.tasks.reading import ReadingTask
from jumar.tasks.scoring.entities import Scheme, check_scheme
from jumar.tasks.sentences import SentenceTask
from jumar.tasks.tagging import TaggingTask
from jumar.tasks.task import Task
from jumar.training.optimizers import AdamW, OptimizerSettings
from jumar.training.schedules import Polynomial, ScheduleSettings
from jumar.training.settings import TrainingSettings

R = TypeVar("R", bound="BertTaskRecipe")
L = TypeVar("L", bound=LabelledData)

_HEADS = ("classifier.weight", "output_weights")
_SCHEMES: Mapping[str, Scheme] = {"strict-iob2": "IOB2", "strict-iobes": "IOBES"}
"""The scheme of each strict `data.scoring`."""


def fine_tuning(duration: str) -> TrainingSettings:
    """Return the originals' training settings, with gradients clipped by their global norm."""
    return TrainingSettings(duration=duration, clip="global_norm", clip_limit=1.0)


@dataclass(frozen=True, kw_only=True)
class BertTaskRecipe(EncoderRecipe):
    """BERT or NEZHA with a head, its data and the originals' optimizer."""

    data: TextData = setting(TextData(), "The texts.")
    training: TrainingSettings = setting(fine_tuning("3ep"), "Length and shape of the run.")
    optimizer: OptimizerSettings = setting(
        AdamW(learning_rate=1e-5, weight_decay=0.01, epsilon=1e-6, bias_correction="none"),
        "The optimizer.",
    )
    schedule: ScheduleSettings = setting(
        Polynomial(warmup="10%", warmup_from_zero=True, decay_from="start"),
        "The learning rate over the run.",
    )

    def tokenizer(self) -> Tokenizer:
        """Open the tokenizer of the network; see `model_tokenizer`."""
        return model_tokenizer(self.model, lower_case=self.data.do_lower_case)

    @abstractmethod
    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the texts and build the network; see `Recipe.build_task`."""

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the originals' graphs."""
        return tf_names(model.state_dict())

    def _size(self, tokenizer: Tokenizer | None = None) -> BertSize:
        """Return the shape of the network after checking that it has enough positions.

        Args:
            tokenizer: Determines the number of word pieces if the settings do not.
        """
        absolute = self.model.size.startswith("bert")
        if absolute and self.data.max_seq_length > self.model.max_positions:
            raise UserError(
                f"samples of {self.data.max_seq_length} tokens are longer than the "
                f"{self.model.max_positions} positions of the network",
                where="data.max_seq_length",
                todo=f"Use at most {self.model.max_positions}, or a nezha model, whose positions "
                "are not limited.",
            )
        return bert_size(
            self.model if tokenizer is None else with_vocabulary(self.model, tokenizer)
        )


def _labelled(data: L, shapes: Mapping[str, Sequence[int]]) -> L:
    """Return the settings with numbers as labels, one per output of the weights, if unset."""
    head = next((shapes[name] for name in _HEADS if name in shapes), None)
    if data.labels or head is None:
        return data
    return replace(data, labels=tuple(str(number) for number in range(head[0])))


def _num_labels(data: LabelledData) -> int:
    if not data.labels:
        raise UserError(
            "the labels are not known without the data",
            where="data.labels",
            todo="List them in the order of the outputs: --set data.labels=negative,positive",
        )
    return len(data.labels)


@dataclass(frozen=True, kw_only=True)
class SentenceLoss:
    """The loss."""

    class_weights: tuple[str, ...] = setting((), MEANING)


@dataclass(frozen=True, kw_only=True)
class ClassifyRecipe(BertTaskRecipe):
    """A network that labels sentences or pairs."""

    objective_name = "sentences"

    data: SentenceData = setting(SentenceData(), "The sentences.")
    loss: SentenceLoss = setting(SentenceLoss(), "The loss.")

    def build_task(self, notice: Callable[[str], None]) -> SentenceTask:
        """See `Recipe.build_task`."""
        tokenizer = self.tokenizer()
        size = self._size(tokenizer)
        sets = open_sentence_sets(self.data, tokenizer, notice)
        network = BertForClassification(size, len(sets.labels), unpadded=self.model.unpadded)
        labels = sets.train.kind.labels
        weights = class_weights(
            self.loss.class_weights,
            sets.labels,
            lambda: np.bincount(labels[labels >= 0], minlength=len(sets.labels)),
            notice,
            sampling=self.data.sampling,
        )
        return SentenceTask(
            network,
            labels=sets.labels,
            train_data=sets.train,
            eval_data=sets.evaluation,
            class_weights=weights,
        )

    def build_model(self) -> BertForClassification:
        """Build the network; the labels must be set or stored in the run."""
        labels = _num_labels(self.data)
        return BertForClassification(self._size(), labels, unpadded=self.model.unpadded)

    def settled(self, task: Task) -> "ClassifyRecipe":
        """Also add the labels."""
        settled = super().settled(task)
        return replace(self, model=settled.model, data=replace(self.data, labels=task.outputs))

    def fitted_to(self, shapes: Mapping[str, Sequence[int]]) -> "ClassifyRecipe":
        """Also adapt the number of labels."""
        model = super().fitted_to(shapes).model
        return replace(self, model=model, data=_labelled(self.data, shapes))


def _strict_scheme(
    data: EntityData, sets: EntitySets, notice: Callable[[str], None]
) -> Scheme | None:
    """Return the scheme that entities must follow to count, after checking the evaluation data.

    Raises:
        UserError: The data follows another scheme.
    """
    scheme = _SCHEMES.get(data.scoring)
    if scheme is not None and sets.evaluation is not None:
        sentences = (
            [sets.labels[number] for number in numbers]
            for numbers in sets.evaluation.kind.scored_labels()
        )
        others, total = check_scheme(scheme, sets.labels, sentences)
        notice(
            f"evaluation: strict scores by {scheme}; {others} of {total} labelled entities do not "
            "follow it and do not count"
        )
    return scheme


@dataclass(frozen=True, kw_only=True)
class EntityRecipe(BertTaskRecipe):
    """A network that tags tokens."""

    objective_name = "tagging"

    data: EntityData = setting(EntityData(), "The tagged sentences.")
    training: TrainingSettings = setting(fine_tuning("5ep"), "Length and shape of the run.")

    def build_task(self, notice: Callable[[str], None]) -> TaggingTask:
        """See `Recipe.build_task`."""
        tokenizer = self.tokenizer()
        size = self._size(tokenizer)
        sets = open_entity_sets(self.data, tokenizer, notice)
        network = BertForTagging(size, len(sets.labels), unpadded=self.model.unpadded)
        return TaggingTask(
            network,
            labels=sets.labels,
            train_data=sets.train,
            eval_data=sets.evaluation,
            by_character=sets.by_character,
            scheme=_strict_scheme(self.data, sets, notice),
        )

    def build_model(self) -> BertForTagging:
        """Build the network; the tags must be set or stored in the run."""
        labels = _num_labels(self.data)
        return BertForTagging(self._size(), labels, unpadded=self.model.unpadded)

    def settled(self, task: Task) -> "EntityRecipe":
        """Also add the tags, and how new texts are split."""
        assert isinstance(task, TaggingTask)
        new_texts = self.data.new_texts
        if new_texts == "auto":
            new_texts = "characters" if task.by_character else "words"
        data = replace(self.data, labels=task.outputs, new_texts=new_texts)
        return replace(self, model=super().settled(task).model, data=data)

    def fitted_to(self, shapes: Mapping[str, Sequence[int]]) -> "EntityRecipe":
        """Also adapt the number of tags."""
        model = super().fitted_to(shapes).model
        return replace(self, model=model, data=_labelled(self.data, shapes))


@dataclass(frozen=True, kw_only=True)
class ReadingRecipe(BertTaskRecipe):
    """A network that finds answers in passages."""

    objective_name = "reading"

    data: ReadingData = setting(ReadingData(), "The passages and questions.")
    training: TrainingSettings = setting(fine_tuning("2ep"), "Length and shape of the run.")

    def build_task(self, notice: Callable[[str], None]) -> ReadingTask:
        """See `Recipe.build_task`."""
        tokenizer = self.tokenizer()
        size = self._size(tokenizer)
        sets = open_reading_sets(self.data, tokenizer, notice)
        network = BertForSpans(size, unpadded=self.model.unpadded)
        return ReadingTask(network, train_data=sets.train, eval_data=sets.evaluation)

    def build_model(self) -> BertForSpans:
        """Build the network."""
        return BertForSpans(self._size(), unpadded=self.model.unpadded)


@register("bert-classify")
def bert_classify() -> ClassifyRecipe:
    """Sentences or pairs: 128 tokens, batch 32, AdamW 1e-5 with 10 % warm-up, 3 epochs.

    Run: jumar train bert-classify --set data.path=FOLDER --set model.vocabulary=vocab.txt
    --set transfer.start_from=bert.safetensors
    """
    return ClassifyRecipe()


@register("bert-ner")
def bert_ner() -> EntityRecipe:
    """Entities: 256 tokens, batch 32, AdamW 1e-5 with 10 % warm-up, 5 epochs.

    Run: jumar train bert-ner --set data.path=FOLDER --set model.vocabulary=vocab.txt
    --set transfer.start_from=bert.safetensors
    """
    return EntityRecipe()


@register("bert-reading")
def bert_reading() -> ReadingRecipe:
    """Answers in passages: windows of 384 tokens, stride 120, batch 32, AdamW 1e-5, 2 epochs.

    Run: jumar train bert-reading --set data.path=FOLDER --set model.vocabulary=vocab.txt
    --set transfer.start_from=bert.safetensors
    """
    return ReadingRecipe()
