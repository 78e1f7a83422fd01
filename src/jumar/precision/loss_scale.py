"""The loss scale: fixed, or updated by the rule of npu_bridge's exponential manager.

Original: Ascend/tensorflow, tf_adapter, npu_loss_scale_manager.py, whose rule is that of
TensorFlow 1.15's contrib manager. The scale grows after a number of consecutive finite steps and
shrinks after a number of overflows; finite steps between overflows do not reset their count.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from jumar.ground.errors import UserError
from jumar.settings import Component, setting

LARGEST = 3.4e38
"""Maximum to which the scale grows: the original's constant for the largest float32."""

_COUNTERS = ("scale", "good", "bad", "skipped", "overflow_at_floor")


@dataclass(frozen=True, kw_only=True)
class LossScaleSettings(Component, ABC):
    """The rule of the loss scale, with npu_bridge's names and defaults."""

    @abstractmethod
    def create(self, device: torch.device | str = "cpu") -> "LossScale | None":
        """Create the loss scale with its state on a device; None if there is none."""


@dataclass(frozen=True, kw_only=True)
class NoLossScale(LossScaleSettings, kind="none"):
    """No loss scale."""

    def create(self, device: torch.device | str = "cpu") -> None:
        """See `LossScaleSettings.create`."""
        del device


@dataclass(frozen=True, kw_only=True)
class FixedLossScale(LossScaleSettings, kind="fixed"):
    """A constant scale for the whole run."""

    init_loss_scale: float = setting(1024.0, "The loss scale.", minimum=1)

    def create(self, device: torch.device | str = "cpu") -> "LossScale":
        """See `LossScaleSettings.create`."""
        return LossScale(self.init_loss_scale, device=device)


@dataclass(frozen=True, kw_only=True)
class ExponentialLossScale(LossScaleSettings, kind="exponential"):
    """A scale that shrinks after overflows and grows after finite steps."""

    init_loss_scale: float = setting(1024.0, "The loss scale at the first step.", minimum=1)
    incr_every_n_steps: int = setting(
        1000, "Consecutive finite steps before the scale grows.", unit="steps", minimum=1
    )
    decr_every_n_nan_or_inf: int = setting(
        2, "Overflows, consecutive or not, before the scale shrinks.", unit="steps", minimum=1
    )
    incr_ratio: float = setting(2.0, "Factor by which the scale grows.", minimum=1)
    decr_ratio: float = setting(0.8, "Factor by which the scale shrinks.", minimum=0.0, maximum=1)

    def check(self) -> None:
        """Reject a scale that could shrink to zero."""
        if self.decr_ratio == 0:
            raise UserError(
                "'loss_scale.decr_ratio' cannot be 0: the first overflow would end all scaling",
                todo="Allowed: above 0, up to 1; the models of Ascend's zoo use 0.5.",
            )

    def create(self, device: torch.device | str = "cpu") -> "LossScale":
        """See `LossScaleSettings.create`."""
        return MovingLossScale(self, device=device)


class LossScale:
    """A fixed loss scale with its state on the device, so that a step never waits for it.

    Args:
        init_loss_scale: The scale.
        device: The device of the state.

    Attributes:
        is_fixed: Whether overflows do not change the scale.
        scale: The scale, a float32 scalar.
        good: Number of consecutive finite steps, an int32 scalar; always 0 for a fixed scale.
        bad: Number of overflows since the last change of scale, an int32 scalar; always 0 for a
            fixed scale.
        skipped: Number of all overflows, each a skipped update; an int64 scalar.
        overflow_at_floor: Whether any step has overflowed with a scale of 1 or less, so that no
            smaller scale could help; a bool scalar.
    """

    is_fixed = True

    def __init__(self, init_loss_scale: float, *, device: torch.device | str) -> None:
        self._floor = _number(1.0, device)
        self.scale = _number(init_loss_scale, device)
        self.good = torch.zeros((), dtype=torch.int32, device=device)
        self.bad = torch.zeros((), dtype=torch.int32, device=device)
        self.skipped = torch.zeros((), dtype=torch.int64, device=device)
        self.overflow_at_floor = torch.zeros((), dtype=torch.bool, device=device)

    def update(self, found_bad: torch.Tensor) -> None:
        """Count a step, and change the scale according to the rule.

        Args:
            found_bad: Scalar on the same device, nonzero if a gradient of the step is not finite on
                any rank. All ranks must pass the same value.
        """
        overflow = found_bad != 0
        self.skipped.add_(overflow)
        self.overflow_at_floor.logical_or_(overflow & (self.scale <= self._floor))
        self.adjust(overflow)

    def adjust(self, overflow: torch.Tensor) -> None:
        """Change the scale after a step; a fixed scale does not change.

        Args:
            overflow: Bool scalar.
        """

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the state as CPU tensors for a checkpoint, waiting for the device."""
        return {name: getattr(self, name).detach().cpu().clone() for name in _COUNTERS}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Restore a state from `state_dict`.

        Raises:
            KeyError: A part of the state is missing.
        """
        for name in _COUNTERS:
            getattr(self, name).copy_(state[name])


class MovingLossScale(LossScale):
    """A loss scale that follows the exponential rule."""

    is_fixed = False

    def __init__(self, settings: ExponentialLossScale, *, device: torch.device | str) -> None:
        super().__init__(settings.init_loss_scale, device=device)
        self._settings = settings
        # Tensors, because the rule computes in float32 and Python floats are double.
        self._incr_ratio = _number(settings.incr_ratio, device)
        self._decr_ratio = _number(settings.decr_ratio, device)
        self._grows_below = _number(LARGEST / settings.incr_ratio, device)

    def adjust(self, overflow: torch.Tensor) -> None:
        """See `LossScale.adjust`."""
        grows = ~overflow & (self.good + 1 >= self._settings.incr_every_n_steps)
        shrinks = overflow & (self.bad + 1 >= self._settings.decr_every_n_nan_or_inf)
        larger = torch.where(
            self.scale < self._grows_below, self.scale * self._incr_ratio, self.scale
        )
        smaller = torch.maximum(self._floor, self.scale * self._decr_ratio)
        self.scale.copy_(torch.where(grows, larger, torch.where(shrinks, smaller, self.scale)))
        changes = grows | shrinks
        self.good.add_(1).masked_fill_(changes | overflow, 0)
        self.bad.add_(overflow).masked_fill_(changes, 0)


def _number(value: float, device: torch.device | str) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float32, device=device)
