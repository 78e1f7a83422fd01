"""The interface of tasks: a model, its data, one or more objectives, and its scores.

The trainer uses tasks only through the classes here. A GAN is a task with two objectives, each with
separate parameters and, from the recipe, a separate optimizer; a classifier has one objective.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from jumar.data.samples import Batch, SampleSet

Decays = Callable[[str, nn.Parameter], bool]
"""Whether weight decay applies to a parameter, by its name in the network."""


class Objective(nn.Module, ABC):
    """A loss with the parameters that are trained on it.

    It returns sums and their divisors, never means: micro-batches and ranks divide by the weight
    of the whole batch, so that the result does not depend on how the batch is split, even if the
    parts have unequal weights (masked tokens, valid pixels). It is a module so that
    DistributedDataParallel can wrap it.

    Attributes:
        minimized: Names of the sums that are divided by their weights and added up to the minimised
            loss; other sums are only logged.
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
        """Return the terms of the loss without regularisation, summed over the batch; scalars."""

    def weights(self, batch: Batch) -> Mapping[str, torch.Tensor]:
        """Return the divisors of the sums of a batch by name; scalars on the device.

        Sums without a divisor here are divided by the number of samples.
        """
        del batch
        return {}

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """See `sums`."""
        return self.sums(batch)


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The metric by which checkpoints are ranked."""

    name: str
    unit: str
    higher_is_better: bool


@dataclass(frozen=True, kw_only=True)
class Illustration:
    """An image that shows what the model does: a sample grid, a before-and-after strip.

    Attributes:
        name: File name without suffix: lower-case letters, digits and hyphens.
        caption: A one-line description, from left to right or from top to bottom.
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
    """A learning problem: built by a recipe, trained and evaluated by the trainer.

    Attributes:
        name: For instance `classification`.
        model: A module with all the state; checkpoints store its `state_dict` as weights.
        objectives: The objectives in the order in which a step trains them.
        train_data: Samples to learn from.
        eval_data: Samples to score on, or None.
        headline: The metric by which checkpoints are ranked.
        averaged: The part of the model covered by the moving average, if there is one; None for
            the whole model. A GAN averages its generator.
        outputs: Names of the network's outputs, such as class names, if known.
        gathered: Names of the results of `evaluate_batch` that are concatenated instead of added,
            because the metric needs all rows.
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

        Return sums over the samples (never means), on the device and of any shape, including the
        scalar `count`. Sums can be added up exactly over an uneven last batch and over ranks.
        Results listed in `gathered` are rows [rows, ...] instead, and those of all batches and
        ranks are concatenated.
        """

    @abstractmethod
    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """Return the metrics of the whole set, in display order.

        Args:
            sums: The results of `evaluate_batch`, added up or concatenated, on the CPU; sums are
                float64.
        """

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> Sequence[ScoreTable]:
        """Return tables to show with the metrics; `sums` as in `summarize`."""
        del sums
        return ()

    def illustrate(self) -> Sequence[Illustration]:
        """Return images that show what the model can currently do.

        Called after an evaluation, with the scored weights in the model, in evaluation mode,
        without gradients and in the run's precision. Implementations use the same inputs every
        time, so that the images of a run can be compared.
        """
        return ()
