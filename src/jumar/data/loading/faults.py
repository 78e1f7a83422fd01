"""How many unreadable samples a run tolerates."""

from collections.abc import Sequence

from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from jumar.ground.text import counted

_SHOWN = 20


class FaultTally:
    """Counts the samples that could not be read, each once however many epochs it occurs in.

    Args:
        allowed: How many are tolerated; 0 stops at the first one.
    """

    def __init__(self, allowed: int = 0) -> None:
        self.allowed = allowed
        self._faults: dict[str, Fault] = {}

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults so far, in the order they occurred."""
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
        so_far = self.faults
        if len(so_far) == 1:
            raise UserError(
                so_far[0].reason,
                where=so_far[0].origin,
                todo="Repair or remove this sample, or continue without up to N such samples: "
                "--skip-corrupt N",
            )
        lines = [str(fault) for fault in so_far[:_SHOWN]]
        if len(so_far) > _SHOWN:
            lines.append(f"... and {len(so_far) - _SHOWN} more")
        raise UserError(
            f"{counted(len(so_far), 'unreadable sample')}, more than the {self.allowed} allowed",
            todo="\n  ".join([*lines, "Repair or remove them, or allow more: --skip-corrupt N"]),
        )
