"""Counts the unreadable samples of a run, and stops it if there are too many."""

from collections.abc import Sequence

from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from jumar.ground.text import counted

_MAX_SHOWN = 20


class FaultTally:
    """Counts samples that cannot be read, each once even if it occurs in several epochs.

    Args:
        allowed: Maximum number that is tolerated; with 0, the first one is an error.
    """

    def __init__(self, allowed: int = 0) -> None:
        self.allowed = allowed
        self._faults: dict[str, Fault] = {}

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults so far, in order of occurrence."""
        return tuple(self._faults.values())

    def add(self, faults: Sequence[Fault]) -> None:
        """Count faults.

        Raises:
            UserError: More samples than allowed cannot be read.
        """
        for fault in faults:
            self._faults.setdefault(fault.origin, fault)
        if len(self._faults) <= self.allowed:
            return
        all_faults = self.faults
        if len(all_faults) == 1:
            raise UserError(
                all_faults[0].reason,
                where=all_faults[0].origin,
                todo="Repair or remove this sample, or skip up to N such samples: --skip-corrupt N",
            )
        lines = [str(fault) for fault in all_faults[:_MAX_SHOWN]]
        if len(all_faults) > _MAX_SHOWN:
            lines.append(f"... and {len(all_faults) - _MAX_SHOWN} more")
        raise UserError(
            f"{counted(len(all_faults), 'unreadable sample')}, more than the {self.allowed} "
            "allowed",
            todo="\n  ".join([*lines, "Repair or remove them, or allow more: --skip-corrupt N"]),
        )
