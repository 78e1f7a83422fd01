"""What an objective's sums are to one batch on one rank."""

import torch

from jumar.data.samples import Batch
from jumar.tasks.task import Objective


def means(objective: Objective, batch: Batch) -> dict[str, torch.Tensor]:
    """Its sums, each divided by its weight, and `loss`, what is minimised."""
    weights = objective.weights(batch)
    count = len(next(iter(batch.values())))
    terms = {name: value / weights.get(name, count) for name, value in objective(batch).items()}
    return {**terms, "loss": torch.stack([terms[name] for name in objective.minimized]).sum()}
