"""Parsing lengths of training, such as `500it`, `3ep`, `10%` or `30min`."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from jumar.ground.errors import UserError

EXAMPLES = "For instance: 500it (steps), 3ep (epochs), 10% (of all steps), 90s, 30min or 2h."

_MAX_DIGITS = 40
_FORM = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*(it|ep|%|s|min|h)", re.ASCII)
_SECONDS = {"s": 1, "min": 60, "h": 3600}
MAX_STEPS = 2**53
"""Beyond this, floats, in which schedules compute, cannot distinguish consecutive steps."""
_MAX_AMOUNTS = {"it": MAX_STEPS, "ep": 10**9, "%": 10**9, "s": 10**11, "min": 10**9, "h": 10**9}
"""Limits per unit: centuries of training, and many times the length of any run for a schedule."""


@dataclass(frozen=True, kw_only=True)
class Duration:
    """A length of training in the unit in which it was written.

    The amount is a fraction because `0.7%` of 1000 steps is 7 steps but 6.999... in floats.
    """

    amount: Fraction
    unit: str
    """`it` (steps), `ep` (epochs), `%` (of all steps), `s`, `min` or `h`."""

    def __str__(self) -> str:
        return f"{Decimal(self.amount.numerator) / self.amount.denominator:f}{self.unit}"

    @property
    def seconds(self) -> float | None:
        """The length in seconds; None if it is counted in steps."""
        return float(self.amount * _SECONDS[self.unit]) if self.unit in _SECONDS else None

    def steps(self, steps_per_epoch: int, total_steps: int | None) -> int | None:
        """The length in whole steps, rounded down, but at least one if it is above zero.

        Args:
            steps_per_epoch: Optimizer steps of one pass over the training set.
            total_steps: Optimizer steps of the whole run; None if unknown.

        Returns:
            The number of steps, or None for a wall-clock time.

        Raises:
            UserError: It is a share of a run whose number of steps is unknown, or the number of
                steps is too large.
        """
        if self.unit in _SECONDS:
            return None
        if self.unit == "it":
            exact = self.amount
        elif self.unit == "ep":
            exact = self.amount * steps_per_epoch
        elif total_steps is None:
            raise UserError(
                f"'{self}' is a share of the whole run, whose number of steps is not known",
                todo="Write it in steps or epochs, for instance 500it or 3ep.",
            )
        else:
            exact = self.amount * total_steps / 100
        if exact > MAX_STEPS:
            raise UserError(
                f"'{self}' is {int(exact)} steps, more than can be counted",
                todo=f"At most {MAX_STEPS // steps_per_epoch}ep here.",
            )
        return max(int(exact), 1 if exact > 0 else 0)


@lru_cache(maxsize=1024)
def parse_duration(text: str, field: str = "") -> Duration:
    """Parse a duration such as `500it`, `3ep`, `2.5ep`, `10%`, `90s`, `30min` or `2h`.

    Args:
        text: A non-negative number and its unit; the unit is required.
        field: The field or option the text comes from, for the error message.

    Raises:
        UserError: The text is not a duration, is too long, or is a fraction of a step.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UserError(f"'{text}' is not a duration", where=field, todo=EXAMPLES)
    limit = _MAX_AMOUNTS[match[2]]
    digits = match[1].replace("_", "")
    # Check the length first, because Python refuses to parse numbers of more than 4,300 digits.
    if len(digits) > _MAX_DIGITS or Fraction(digits) > limit:
        short = text if len(text) <= _MAX_DIGITS else f"{text[:_MAX_DIGITS]}..."
        raise UserError(f"'{short}' is too long", where=field, todo=f"At most {limit}{match[2]}.")
    amount = Fraction(digits)
    if match[2] == "it" and amount.denominator != 1:
        raise UserError(f"'{text}' is not a whole number of steps", where=field, todo=EXAMPLES)
    return Duration(amount=amount, unit=match[2])


def is_due(finished: int, every: int | None) -> bool:
    """Whether something that happens every `every` steps is due now.

    Args:
        finished: Finished steps; nothing is due at 0.
        every: The interval in steps; None or 0 for never.
    """
    return finished > 0 and every is not None and every > 0 and finished % every == 0
