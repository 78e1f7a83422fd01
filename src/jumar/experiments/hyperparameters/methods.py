"""Optuna's samplers and pruners: how settings are drawn and when hopeless runs end.

Optuna's CMA-ES keeps its state as a pickle in the study and is therefore not offered: nothing that
is read from a file may run code.
"""

from collections.abc import Callable
from hashlib import sha256

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.pruners import SuccessiveHalvingPruner as HalvingPruner
from optuna.samplers import BaseSampler, GPSampler, QMCSampler, RandomSampler, TPESampler

from jumar.ground.errors import unknown_name

NO_PRUNER = "none"
BEFORE_PRUNING = 4
"""Number of trials that must finish before others are compared with them."""

_SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": lambda seed: TPESampler(seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
    "gp": lambda seed: GPSampler(seed=seed),
    "qmc": lambda seed: QMCSampler(scramble=True, seed=seed),
}
_PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "median": lambda: MedianPruner(n_startup_trials=BEFORE_PRUNING),
    "halving": HalvingPruner,
    "hyperband": HyperbandPruner,
    NO_PRUNER: NopPruner,
}
_ONE_SEED = "qmc"
"""Its draws are points of one sequence, which must not change between trials."""


def check_method(sampler: str, pruner: str) -> None:
    """Check the names of sampler and pruner.

    Raises:
        UserError: One is unknown.
    """
    if sampler not in _SAMPLERS:
        raise unknown_name("sampler", sampler, _SAMPLERS, where="--search")
    if pruner not in _PRUNERS:
        raise unknown_name("pruner", pruner, _PRUNERS, where="--pruner")


def create_sampler(name: str, seed: int, number: int) -> BaseSampler:
    """The sampler of one trial.

    A sampler keeps the state of its random numbers in memory. With one per trial, seeded by its
    number, an interrupted search makes the same draws.

    Args:
        name: A known sampler.
        seed: The seed of the search.
        number: The number of the trial.
    """
    key = f"{seed}" if name == _ONE_SEED else f"{seed} {number}"
    return _SAMPLERS[name](int.from_bytes(sha256(key.encode()).digest()[:4], "big"))


def create_pruner(name: str) -> BasePruner:
    """A known pruner."""
    return _PRUNERS[name]()


def quiet_optuna() -> None:
    """Suppress Optuna's terminal output."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
