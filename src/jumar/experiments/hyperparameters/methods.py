"""Optuna's samplers, which propose settings, and pruners, which stop unpromising runs.

Optuna's CMA-ES stores its state as a pickle in the study and is therefore not offered: content
read from a file must not be able to run code.
"""

from collections.abc import Callable
from hashlib import sha256

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.pruners import SuccessiveHalvingPruner as HalvingPruner
from optuna.samplers import BaseSampler, GPSampler, QMCSampler, RandomSampler, TPESampler

from jumar.ground.errors import unknown_name

NO_PRUNER = "none"
NUM_STARTUP_TRIALS = 4
"""Number of trials that must finish before others are pruned."""

_SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": lambda seed: TPESampler(seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
    "gp": lambda seed: GPSampler(seed=seed),
    "qmc": lambda seed: QMCSampler(scramble=True, seed=seed),
}
_PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "median": lambda: MedianPruner(n_startup_trials=NUM_STARTUP_TRIALS),
    "halving": HalvingPruner,
    "hyperband": HyperbandPruner,
    NO_PRUNER: NopPruner,
}
_SEQUENCE_SAMPLER = "qmc"
"""The sampler whose points form one sequence, so that all trials need the same seed."""


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
    """Create the sampler of one trial.

    A sampler keeps its random state in memory. With one per trial, seeded by the trial's number, a
    resumed search proposes the same settings.

    Args:
        name: A known sampler.
        seed: The seed of the search.
        number: The number of the trial.
    """
    key = f"{seed}" if name == _SEQUENCE_SAMPLER else f"{seed} {number}"
    return _SAMPLERS[name](int.from_bytes(sha256(key.encode()).digest()[:4], "big"))


def create_pruner(name: str) -> BasePruner:
    """Create a known pruner."""
    return _PRUNERS[name]()


def quiet_optuna() -> None:
    """Suppress Optuna's terminal output."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
