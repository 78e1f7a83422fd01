"""ReLU inputs that rounding may put on either side of zero, and what the other side changes.

A fixture was made in float32, where an input of 1e-7 is as well above as below zero. Which of them
it is decides whether a gradient flows. Replays in float64 know the true side; the original may
have been on the other one. `with_doubt` replays a case once more for each such input, the other
way, so that a test may allow for their effects and for nothing else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Results = dict[str, NDArray[Any]]
Place = tuple[int, int]
"""Number of the call of a ReLU, and position in its input."""

UNDECIDED = 3e-6
"""Inputs closer to zero than this part of their root mean square: 25 roundings of float32."""
MOST = 60
"""More undecided inputs than this are not a matter of rounding."""


def with_doubt(run: Callable[[], Results]) -> tuple[Results, Callable[[], Results]]:
    """The results of a replay, and how far each may be off for undecided inputs of ReLUs.

    Args:
        run: The whole replay, from fresh weights on.

    Returns:
        The results, and what computes the doubt when it is needed: the replay is then made once
        more for each undecided input.
    """
    with _relus(None) as undecided:
        ours = run()

    @lru_cache(maxsize=1)
    def doubt() -> Results:
        assert len(undecided) <= MOST, f"{len(undecided)} undecided inputs"
        sums = {key: np.zeros(np.shape(values), np.float64) for key, values in ours.items()}
        for place in undecided:
            with _relus(place):
                other = run()
            for key, values in other.items():
                sums[key] = sums[key] + np.abs(np.asarray(values, np.float64) - ours[key])
        return sums

    return ours, doubt


@contextmanager
def _relus(flipped: Place | None) -> Iterator[list[Place]]:
    """Yields the undecided inputs of the calls of ReLUs; one input is taken the other way."""
    undecided: list[Place] = []
    calls = 0

    def passes(x: Tensor) -> Tensor:
        nonlocal calls
        values = x.detach().reshape(-1)
        near = (values.abs() < UNDECIDED * values.square().mean().sqrt()).nonzero()
        undecided.extend((calls, place) for place in near.flatten().tolist())
        above = values > 0
        if flipped is not None and flipped[0] == calls:
            above[flipped[1]] = ~above[flipped[1]]
        calls += 1
        return above.view(x.shape)

    def relu(x: Tensor, inplace: bool = False) -> Tensor:
        del inplace
        return x * passes(x)

    def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
        del inplace
        return torch.where(passes(x), x, negative_slope * x)

    replaced = {"relu": relu, "relu_": relu, "leaky_relu": leaky_relu, "leaky_relu_": leaky_relu}
    with patch.multiple(torch.nn.functional, **replaced):
        yield undecided
