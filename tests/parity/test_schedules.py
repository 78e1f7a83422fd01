"""Learning rates of the original scripts and of tf.train, replayed from `schedules.npz`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.training.schedules import (
    Cosine,
    CosineRestarts,
    Piecewise,
    Polynomial,
    ScheduleSettings,
    learning_rate,
)
from tests.parity.fixture import ParityCase

Config = Mapping[str, Any]
Setup = tuple[ScheduleSettings, float, int, int]
"""Settings, base rate, steps per epoch, total steps."""


def bert(config: Config) -> Setup:
    settings = Polynomial(
        power=config["power"],
        warmup=f"{config['warmup_steps']}it",
        warmup_from_zero=True,
        decay_from="start",
    )
    return settings, config["init_lr"], 100, config["total_steps"]


def alexnet(config: Config) -> Setup:
    settings = Cosine(warmup=f"{config['warmup_epochs']}ep", decay_from="start", per_epoch=True)
    assert config["table_length"] == config["steps_per_epoch"] * config["max_epochs"]
    return settings, config["base_lr"], config["steps_per_epoch"], config["table_length"]


def resnext(config: Config) -> Setup:
    settings = Cosine(
        warmup=f"{config['warmup_epochs']}ep",
        warmup_kind="cosine",
        decay_counts_step=True,
        end=config["lr_end"],
        after_end=config["lr_end"] * 0.01 / config["lr_max"],
    )
    return settings, config["lr_max"], config["steps_per_epoch"], config["total_steps"]


def per_period(kind: str, **more: Any) -> Callable[[Config], Setup]:
    def make(config: Config) -> Setup:
        settings = ScheduleSettings.kinds[kind](
            every=f"{config['decay_steps']}it", rate=config["rate"], **more
        )
        return settings, config["lr"], 100, 100000

    return make


def piecewise(config: Config) -> Setup:
    base = config["values"][0]
    settings = Piecewise(
        boundaries=tuple(f"{boundary}it" for boundary in config["boundaries"]),
        values=tuple(value / base for value in config["values"]),
    )
    return settings, base, 100, 100000


def cosine(config: Config) -> Setup:
    settings = Cosine(decay_until=f"{config['decay_steps']}it", end=config["alpha"])
    return settings, config["lr"], 100, 100000


def polynomial(config: Config) -> Setup:
    settings = Polynomial(
        decay_until=f"{config['decay_steps']}it",
        end=config["end"] / config["lr"],
        power=config["power"],
        cycle=config.get("cycle", False),
    )
    return settings, config["lr"], 100, 100000


def restarts(config: Config) -> Setup:
    settings = CosineRestarts(
        every=f"{config['first_decay_steps']}it",
        period_factor=config["t_mul"],
        restart_factor=config["m_mul"],
        end=config["alpha"],
    )
    return settings, config["lr"], 100, 100000


BY_FIELD: Mapping[str, Callable[[Config], Setup]] = {
    "warmup_steps": bert,
    "table_length": alexnet,
    "lr_max": resnext,
    "boundaries": piecewise,
    "first_decay_steps": restarts,
    "alpha": cosine,
    "power": polynomial,
}
"""The field of a case's settings that only one schedule has, in the order of asking."""
PER_PERIOD = ("inverse_time", "natural_exp", "exponential")
"""What the name of a case begins with whose settings are alike."""


def setup_of(name: str, config: Config) -> Setup:
    """The schedule of a case, whatever its numbers are."""
    for field, make in BY_FIELD.items():
        if field in config:
            return make(config)
    (kind,) = (kind for kind in PER_PERIOD if name.startswith(kind))
    if kind == "natural_exp":
        kind = "natural_exponential"
    more = {"staircase": True} if "staircase" in name else {}
    return per_period(kind, **more)(config)


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "schedules.npz")


def test_learning_rates_match_the_original_in_every_case(case: ParityCase) -> None:
    assert set(case.config) == set(case.meta["results"])
    for name, config in case.config.items():
        settings, base, steps_per_epoch, total_steps = setup_of(name, config)
        rates = [
            learning_rate(
                settings, base, int(step), steps_per_epoch=steps_per_epoch, total_steps=total_steps
            )
            for step in case.input(name)
        ]
        assert case.check(name, np.array(rates)), name
        # The originals round to float32 at each operation, which is all that is allowed to differ.
        assert case.error(name, np.array(rates)) < 1e-6, name
