"""What a task is: a model, its data, one or more objectives, and how it is scored.

The trainer uses tasks only through the classes here. A GAN is a task with two objectives, each
with its own trained parameters and (by the recipe) its own optimizer; a classifier has one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from jumar.data.samples import Batch, SampleSet


class Objective(nn.Module, ABC):
    """A loss with the parameters that are trained on it.

    It returns sums and their divisors, never means: micro-batches and ranks divide by the
    weight of the whole batch, so that the result is the same however the batch is split, even if
    parts have unequal weights (masked tokens, valid pixels). Since it is a module,
    DistributedDataParallel can wrap it.

    Attributes:
        minimized: The names of the sums that, each divided by its weight, add up to the minimised
            loss; the others are only logged.
        name: The key of this objective's optimizer in the recipe, and the prefix in logs.
        trained: The module whose parameters this objective's optimizer updates.
    """

    name: str
    trained: nn.Module
    minimized: Sequence[str] = ("loss",)

    def is_due(self, step: int) -> bool:
        """Whether this objective is trained at a step, counted from 0.

        A GAN's generator is due at every n_critic-th step.
        """
        del step
        return True

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Whether weight decay applies to a parameter of `trained`, by its name there."""
        del name, parameter
        return True

    @abstractmethod
    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        """The terms of the loss, summed over the batch and without regularisation; scalars."""

    def weights(self, batch: Batch) -> Mapping[str, torch.Tensor]:
        """What to divide the sums of a batch by, by name; scalars on the device.

        Sums not listed here are divided by the number of samples.
        """
        del batch
        return {}

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """See `sums`."""
        return self.sums(batch)


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The one metric by which checkpoints are ranked."""

    name: str
    unit: str
    higher_is_better: bool


@dataclass(frozen=True, kw_only=True)
class Illustration:
    """An image that shows what the model does: a sample grid, a before-and-after strip.

    Attributes:
        name: Its file name without suffix: lower-case letters, digits and hyphens.
        caption: One line that describes it, from left to right or top to bottom.
        image: uint8 [height, width, 3] on the CPU.
    """

    name: str
    caption: str
    image: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """A table that an evaluation produces besides its metrics, such as a confusion matrix."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Task(ABC):
    """What is learned: built by a recipe, trained and evaluated by the trainer.

    Attributes:
        name: For instance `classification`.
        model: Everything with state; its `state_dict` is stored as a checkpoint's weights.
        objectives: The objectives in the order in which a step trains them.
        train_data: Samples to learn from.
        eval_data: Samples to score on, or None.
        headline: The metric by which checkpoints are ranked.
        averaged: The part of the model covered by the moving average, if there is one; None for
            the whole model. A GAN averages its generator.
        outputs: What the network's outputs mean, such as the class names, if known.
        gathered: The results of `evaluate_batch` that are rows to concatenate, because the metric
            computed from them is not a sum.
    """

    name: str
    model: nn.Module
    objectives: Sequence[Objective]
    train_data: SampleSet
    eval_data: SampleSet | None
    headline: Headline
    averaged: nn.Module | None = None
    outputs: Sequence[str] = ()
    gathered: Sequence[str] = ()

    @abstractmethod
    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Score a batch.

        Returns sums over the samples (never means), on the device and of any shape, including the
        scalar `count`. Sums add up exactly over an uneven last batch and over ranks. A result
        listed in `gathered` is [rows, ...] instead: the rows of all batches and ranks are
        concatenated.
        """

    @abstractmethod
    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """The metrics of the whole set, in display order.

        Args:
            sums: The results of `evaluate_batch`, added up or concatenated, on the CPU; sums are
                float64.
        """

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> Sequence[ScoreTable]:
        """Tables shown with the metrics; `sums` as in `summarize`."""
        del sums
        return ()

    def illustrate(self) -> Sequence[Illustration]:
        """Images of what the model can currently do.

        Called after an evaluation, with the scored weights in the model, in evaluation mode,
        without gradients and in the run's precision. Use the same inputs every time, so that the
        images of a run can be compared.
        """
        return ()
