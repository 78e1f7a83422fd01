"""Optimizers: each kind is a settings class that builds its optimizer."""

from jumar.training.optimizers.kinds import (
    Adagrad,
    Adam,
    AdamW,
    Lamb,
    Momentum,
    RmsProp,
    Sgd,
)
from jumar.training.optimizers.optimizer import OptimizerSettings, Trained, create_optimizer

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "Lamb",
    "Momentum",
    "OptimizerSettings",
    "RmsProp",
    "Sgd",
    "Trained",
    "create_optimizer",
]
