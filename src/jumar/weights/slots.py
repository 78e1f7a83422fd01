"""Locate an optimizer's state in a TensorFlow checkpoint: the slots of each trained variable."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from jumar.models.tf_layout import TfNames, TfOptimizer, TfVariable
from jumar.weights.matching import AVERAGE, Match
from jumar.weights.tensor_types import TensorEntry


@dataclass(frozen=True, kw_only=True)
class VariableSlots:
    """The slots of one variable.

    Attributes:
        slots: Names in the file by the names in torch's optimizer state.
        powers: Names in the file of beta1 and beta2 to the power of one more than the number of
            updates; None if the file lacks them.
    """

    variable: TfVariable
    slots: Mapping[str, str]
    powers: tuple[str, str] | None


@dataclass(frozen=True, kw_only=True)
class SlotMatching:
    """Which parts of an optimizer's state are in a file.

    Attributes:
        found: The variables with all their slots.
        lacking: Trained variables without some of their slots.
    """

    found: Sequence[VariableSlots]
    lacking: Sequence[TfVariable]

    @property
    def is_complete(self) -> bool:
        """Whether training can resume with this state."""
        return bool(self.found) and not self.lacking

    @property
    def sources(self) -> frozenset[str]:
        """The names in the file of all slots and powers found."""
        return frozenset(
            name
            for variable_slots in self.found
            for name in (*variable_slots.slots.values(), *(variable_slots.powers or ()))
        )


def match_slots(
    names: TfNames,
    matches: Sequence[Match],
    entries: Mapping[str, TensorEntry],
    trained: AbstractSet[str],
) -> SlotMatching:
    """Find the slots of the matched variables.

    Args:
        names: The network's names in TensorFlow.
        matches: Where each weight is in the file.
        entries: The file's entries by name.
        trained: Names of the weights that an optimizer changes.
    """
    variable_slots: list[VariableSlots] = []
    lacking: list[TfVariable] = []
    for match in matches:
        if match.variable.name not in trained:
            continue
        optimizer = names.optimizer_of(match.variable)
        owner = match.raw.removesuffix(AVERAGE)
        slots = {} if optimizer is None else {k: owner + s for k, s in optimizer.slots.items()}
        shape = entries[match.raw].shape
        if optimizer is None or not all(
            name in entries and entries[name].shape == shape for name in slots.values()
        ):
            lacking.append(match.variable)
            continue
        powers = find_powers(optimizer, entries)
        variable_slots.append(VariableSlots(variable=match.variable, slots=slots, powers=powers))
    return SlotMatching(found=variable_slots, lacking=lacking)


def find_powers(
    optimizer: TfOptimizer, entries: Mapping[str, TensorEntry]
) -> tuple[str, str] | None:
    """Return the names in the file of an optimizer's powers; None if it has none.

    A name scope around `minimize` precedes their names and differs between scripts of the same
    network: if the original's name is missing, the only name with the same ending is used.
    """
    names: list[str] = []
    for power in optimizer.powers or ():
        ending = power.rpartition("/")[2]
        candidates = [name for name in entries if name.rpartition("/")[2] == ending]
        name = power if power in entries else candidates[0] if len(candidates) == 1 else ""
        if not name or entries[name].elements != 1:
            return None
        names.append(name)
    return (names[0], names[1]) if names else None


def trained_variables(
    names: TfNames, trained: AbstractSet[str]
) -> Iterator[tuple[TfVariable, TfOptimizer]]:
    """Yield the variables that have slots in the original's checkpoints, with their optimizers."""
    for variable in names.variables:
        optimizer = names.optimizer_of(variable)
        if optimizer is not None and variable.name in trained:
            yield variable, optimizer
