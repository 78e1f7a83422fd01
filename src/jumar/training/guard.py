"""Stopping a run whose loss is not finite before the update that would ruin the weights."""

import torch

from jumar.training.parallel.ranks import Ranks


class NonFiniteLoss(Exception):
    """The loss or the gradients of an objective became NaN or infinite beyond recovery.

    Attributes:
        step: The step, counted from 1, whose update was skipped.
        objective: Name of the objective.
        reason: What became NaN or infinite.
    """

    def __init__(self, step: int, objective: str, reason: str) -> None:
        super().__init__(f"step {step}, objective '{objective}': {reason}")
        self.step = step
        self.objective = objective
        self.reason = reason


class Guard:
    """Records on the device the first step and objective whose update must be skipped.

    From that step on, `blocked` is 1 and every update is skipped, so the weights stay unchanged
    until the host checks the flag. On an accelerator it does so only at log lines, because reading
    the flag at every step would stall the device at every step.
    """

    def __init__(self, objectives: list[str], device: torch.device, ranks: Ranks) -> None:
        self._objectives = objectives
        self._ranks = ranks
        self.blocked = torch.zeros((), dtype=torch.float32, device=device)
        self._where = torch.zeros(2, dtype=torch.int64, device=device)

    def watch(self, found_bad: torch.Tensor, step: int, objective: int) -> torch.Tensor:
        """Record a flag; returns whether this update must be skipped.

        Args:
            found_bad: 0-dim float32, nonzero if this rank found an unrecoverable value.
            step: The step, counted from 1.
            objective: The index of the objective.
        """
        bad = self._ranks.maximum(found_bad)
        first = (bad > 0) & (self.blocked == 0)
        position = torch.tensor([step, objective], dtype=torch.int64).to(
            self._where.device, non_blocking=True
        )
        self._where = torch.where(first, position, self._where)
        self.blocked = torch.maximum(self.blocked, bad)
        return self.blocked

    def raise_if_blocked(self, reason: str) -> None:
        """Read the flag; waits for the device.

        Raises:
            NonFiniteLoss: An update has been skipped.
        """
        if self.blocked.item():
            step, objective = self._where.tolist()
            raise NonFiniteLoss(step, self._objectives[objective], reason)
