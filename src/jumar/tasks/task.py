"""What a task is: a model, its data, one or more objectives, and how it is scored.

The trainer knows tasks only through the classes here. A GAN is a task with two objectives, each
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

    Calling it with a batch returns scalars on the device, among them `loss`, the mean over the
    samples of the batch without regularisation. Being a module, it is what DistributedDataParallel
    wraps, so that gradients of every objective are averaged over the ranks.

    Attributes:
        name: The key of this objective's optimizer in the recipe, and the prefix in logs.
        trained: The module whose parameters this objective's optimizer updates.
    """

    name: str
    trained: nn.Module

    def is_due(self, step: int) -> bool:
        """Whether this objective is trained at the step (counted from 0); a GAN's generator is
        due at every n_critic-th step.
        """
        del step
        return True

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Whether weight decay applies to a parameter of `trained`, by its name there."""
        del name, parameter
        return True

    @abstractmethod
    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """The loss terms of a batch; `loss` is minimised, the others are only logged."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The one metric by which checkpoints are ranked."""

    name: str
    unit: str
    higher_is_better: bool


class Task(ABC):
    """What is learned: built by a recipe, trained and evaluated by the trainer.

    Attributes:
        name: For instance `classification`.
        model: Everything with state; its `state_dict` is what a checkpoint's weights are.
        objectives: In the order in which a step trains them.
        train_data: Samples to learn from.
        eval_data: Samples to score on, or None.
        headline: The metric by which checkpoints are ranked.
    """

    name: str
    model: nn.Module
    objectives: Sequence[Objective]
    train_data: SampleSet
    eval_data: SampleSet | None
    headline: Headline

    @abstractmethod
    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Sums over the samples of a batch (never means), as scalars on the device, among them
        `count`. Sums add up exactly over an uneven last batch and over ranks.
        """

    @abstractmethod
    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The metrics from the sums over the whole set, in the order in which they are shown."""
