"""The state that a resumed run needs besides its weights: JSON values and safetensors tensors."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

from jumar.ground.files import write_text
from jumar.ground.json_text import mapped
from jumar.training.run_directory import read_json

_NOT_FINITE = "float"


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """The state of a run.

    Attributes:
        values: Counters, sums and optimizer settings, as far as JSON can represent them.
        slots: The optimizers' tensors for each parameter, with keys `OBJECTIVE/PARAMETER/SLOT`, and
            for each parameter group, with keys `OBJECTIVE/group NUMBER/KEY`. An imported
            checkpoint, which has no objectives, has keys `PARAMETER/SLOT`.
    """

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    slots: Mapping[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])

    def by_owner(self) -> dict[str, dict[str, torch.Tensor]]:
        """The slots of each parameter or group, by the part of the key before the slot's name."""
        slots: dict[str, dict[str, torch.Tensor]] = {}
        for name, value in self.slots.items():
            owner, _, key = name.rpartition("/")
            slots.setdefault(owner, {})[key] = value
        return slots


def write_values(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object from which `read_values` restores every number bit for bit.

    Infinity and NaN, which JSON cannot represent, are written as `{"float": "inf"}` and the like.
    """
    write_text(path, json.dumps(_encoded(values), indent=1, allow_nan=False) + "\n")


def read_values(path: Path) -> dict[str, Any]:
    """Read an object written by `write_values`.

    Raises:
        UserError: The file cannot be read or is not a JSON object.
    """
    return _decoded(read_json(path))


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: str(value)}
    return mapped(value, _encoded)


def _decoded(value: Any) -> Any:
    if isinstance(value, Mapping):
        text = cast("Mapping[str, Any]", value).get(_NOT_FINITE)
        if isinstance(text, str) and text in ("inf", "-inf", "nan"):
            return float(text)
    return mapped(value, _decoded)
