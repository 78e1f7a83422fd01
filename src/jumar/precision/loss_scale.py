"""The loss scale: fixed, or updated by the rule of npu_bridge's exponential manager.

Original: Ascend/tensorflow, tf_adapter, npu_loss_scale_manager.py, whose rule is that of
TensorFlow 1.15's contrib manager. Growth needs consecutive finite steps, shrinking accumulated
overflows: finite steps between two overflows do not make the first one forgotten.
"""

from collections.abc import Mapping
from typing import Literal

import torch

LARGEST = 3.4e38
"""The scale does not grow beyond this; the original's constant for the largest float32."""

_COUNTERS = ("scale", "good", "bad", "skipped", "overflow_at_floor")


class LossScale:
    """A loss scale whose state lives on the device, so that a step never waits for it.

    Args:
        kind: `fixed` keeps the initial scale; `exponential` follows the rule.
        init_loss_scale: The scale of the first step.
        incr_every_n_steps: Consecutive finite steps before the scale grows.
        decr_every_n_nan_or_inf: Overflows since the last change before it shrinks.
        incr_ratio: Growth factor.
        decr_ratio: Shrink factor; the result is never below 1.
        device: Where the state lives.

    Attributes:
        scale: float32 scalar.
        good: int32 scalar, consecutive finite steps; stays 0 for `fixed`.
        bad: int32 scalar, overflows since the last change of scale; stays 0 for `fixed`.
        skipped: int64 scalar, all overflows so far, each a left-out update.
        overflow_at_floor: bool scalar, set for good once a step overflowed with a scale of 1 or
            less: no scale is left that could help.

    Raises:
        ValueError: A fixed scale below 1, as in the original.
    """

    def __init__(
        self,
        kind: Literal["fixed", "exponential"],
        *,
        init_loss_scale: float,
        incr_every_n_steps: int = 1000,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.8,
        device: torch.device | str = "cpu",
    ) -> None:
        if kind == "fixed" and init_loss_scale < 1:
            raise ValueError(f"a fixed loss scale must be 1 or more, not {init_loss_scale}")
        self.kind = kind
        self.incr_every_n_steps = incr_every_n_steps
        self.decr_every_n_nan_or_inf = decr_every_n_nan_or_inf

        def number(value: float) -> torch.Tensor:
            return torch.tensor(value, dtype=torch.float32, device=device)

        # Tensors, since the rule is arithmetic in float32 and a Python number is a double.
        self._incr_ratio = number(incr_ratio)
        self._decr_ratio = number(decr_ratio)
        self._grows_below = number(LARGEST / incr_ratio)
        self._floor = number(1.0)
        self.scale = number(init_loss_scale)
        self.good = torch.zeros((), dtype=torch.int32, device=device)
        self.bad = torch.zeros((), dtype=torch.int32, device=device)
        self.skipped = torch.zeros((), dtype=torch.int64, device=device)
        self.overflow_at_floor = torch.zeros((), dtype=torch.bool, device=device)

    def update(self, found_bad: torch.Tensor) -> None:
        """Count a step, and change the scale where the rule says so.

        Args:
            found_bad: Scalar on the same device, not 0 when a gradient of the step is not finite
                on any rank. All ranks must pass the same value.
        """
        overflow = found_bad != 0
        self.skipped.add_(overflow)
        self.overflow_at_floor.logical_or_(overflow & (self.scale <= self._floor))
        if self.kind == "fixed":
            return
        grows = ~overflow & (self.good + 1 >= self.incr_every_n_steps)
        shrinks = overflow & (self.bad + 1 >= self.decr_every_n_nan_or_inf)
        larger = torch.where(
            self.scale < self._grows_below, self.scale * self._incr_ratio, self.scale
        )
        smaller = torch.maximum(self._floor, self.scale * self._decr_ratio)
        self.scale.copy_(torch.where(grows, larger, torch.where(shrinks, smaller, self.scale)))
        changes = grows | shrinks
        self.good.add_(1).masked_fill_(changes | overflow, 0)
        self.bad.add_(overflow).masked_fill_(changes, 0)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The state as CPU tensors, for a checkpoint; waits for the device."""
        return {name: getattr(self, name).detach().cpu().clone() for name in _COUNTERS}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go back to a state of `state_dict`.

        Raises:
            KeyError: The state lacks a part.
        """
        for name in _COUNTERS:
            getattr(self, name).copy_(state[name])
