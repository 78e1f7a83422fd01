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


CASES: Mapping[str, Callable[[Config], Setup]] = {
    "bert_ascend_adam_1000_100": bert,
    "bert_ascend_lamb_700_70": bert,
    "bert_ascend_adam_50_0": bert,
    "alexnet_8p": alexnet,
    "alexnet_1p": alexnet,
    "alexnet_short": alexnet,
    "resnext_8p": resnext,
    "resnext_short": resnext,
    "exponential_staircase": per_period("exponential", staircase=True),
    "exponential": per_period("exponential"),
    "piecewise": piecewise,
    "tf_cosine": cosine,
    "polynomial_p0.5_end": polynomial,
    "polynomial_cycle": polynomial,
    "inverse_time": per_period("inverse_time"),
    "natural_exp": per_period("natural_exponential"),
    "cosine_restarts": restarts,
}


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "schedules.npz")


def test_every_case_of_the_fixture_is_replayed(case: ParityCase) -> None:
    assert set(CASES) == set(case.meta["results"])


@pytest.mark.parametrize("name", CASES)
def test_learning_rates_are_the_originals(case: ParityCase, name: str) -> None:
    settings, base, steps_per_epoch, total_steps = CASES[name](case.config[name])
    rates = [
        learning_rate(
            settings, base, int(step), steps_per_epoch=steps_per_epoch, total_steps=total_steps
        )
        for step in case.input(name)
    ]
    assert case.check(name, np.array(rates))
    # The originals round to float32 at each operation, which is all that is allowed to differ.
    assert case.error(name, np.array(rates)) < 1e-6
