"""`tuned.json`: faster settings of a recipe, measured on one machine by `jumar tune speed`.

It contains the settings, the measurements, and the conditions under which they are valid. Nothing
in it is executed: only the fields and variables in two lists can be set, and fields pass the same
checks as `--set`.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.ground.paths import is_folder
from jumar.recipes.recipe import Recipe
from jumar.settings import describe
from jumar.training.run_directory import read_json, write_json

FILE: Final = "tuned.json"
FOLDER: Final = Path("tuned")
VARIABLES: Final = frozenset(
    {
        "CPU_AFFINITY_CONF",
        "GLIBC_TUNABLES",
        "LD_PRELOAD",
        "MULTI_STREAM_MEMORY_REUSE",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_NPU_ALLOC_CONF",
        "TASK_QUEUE_ENABLE",
        "THP_MEM_ALLOC_ENABLE",
    }
)
"""Environment variables that a tuned file may set."""
FIELDS: Final = frozenset(
    {
        "data.prefetch",
        "data.workers",
        "threads.intra_op",
        "training.channels_last",
        "training.compile",
    }
)
"""Fields that a tuned file may set, besides `fused` of an optimizer. They are not compared with the
settings of the measurement, so any other field could change the training unnoticed."""
ALLOCATORS: Final = ("jemalloc", "tcmalloc", "tcmalloc_minimal")
_PRELOADED: Final = re.compile(rf"lib(?:{'|'.join(ALLOCATORS)})\.so(?:\.\d+)*")
"""Matches a library's bare name, which the system's loader looks up in the system's folders. A path
could name anybody's code."""
_FORMAT: Final = 1
_WITHOUT_EFFECT: Final = (
    "seed",
    "training.duration",
    "training.log_every",
    "training.evaluate_every",
    "checkpoints.",
    "transfer.",
)
"""Fields that change neither the result of a step nor its duration."""


@dataclass(frozen=True, kw_only=True)
class Validity:
    """The conditions under which a measurement is valid.

    Attributes:
        recipe: The recipe's name.
        fields: The settings that affect a step, by `section.field`.
        machine: Processor, cores and device.
        versions: Versions of jumar, Python, torch and drivers.
    """

    recipe: str
    fields: Mapping[str, Any]
    machine: Mapping[str, Any]
    versions: Mapping[str, Any]

    @property
    def recipe_hash(self) -> str:
        """Hash of the recipe's name and settings."""
        text = json.dumps([self.recipe, self.fields], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, now: "Validity", apart_from: Sequence[str] = ()) -> list[str]:
        """Return the differences from the present state as `name was X, is Y`.

        Args:
            now: The present state.
            apart_from: Fields that the measurement changes.
        """
        lines: list[str] = []
        for kind in ("recipe", "fields", "machine", "versions"):
            before, after = (
                {kind: value} if isinstance(value, str) else cast("Mapping[str, Any]", value)
                for value in (getattr(self, kind), getattr(now, kind))
            )
            for name in dict.fromkeys([*before, *after]):
                value_before, value_now = before.get(name), after.get(name)
                if value_before != value_now and name not in apart_from:
                    lines.append(f"{name} was {_shown(value_before)}, is {_shown(value_now)}")
        return lines


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The result of a tuning.

    Attributes:
        state: `partial` if the tuning was interrupted before its result was confirmed.
        validity: The conditions under which it is valid.
        settings: Fields to set, as text.
        environment: Environment variables to set before torch is imported.
        weights: Effect on the weights, determined by their hash: `identical` or `rounding`.
        measured: The measurements: speed-ups with confidence intervals, the effect of each knob.
    """

    state: Literal["finished", "partial"]
    validity: Validity
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    weights: Literal["identical", "rounding"] = "identical"
    measured: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def assignments(self) -> list[str]:
        """The settings in the form that `--set` accepts."""
        return [f"{name}={value}" for name, value in self.settings.items()]

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            UserError: The file cannot be written.
        """
        validity = {**asdict(self.validity), "recipe_hash": self.validity.recipe_hash}
        content = {"format": _FORMAT, **asdict(self), "validity": validity}
        write_json(path, content)


def default_folder(recipe: str) -> Path:
    """Return the folder that `jumar tune speed` writes and `jumar train --tuned` reads."""
    return FOLDER / recipe


def read_tuned(path: Path) -> Tuned:
    """Read a tuned file.

    Args:
        path: The file, or its folder.

    Raises:
        UserError: The file cannot be read, or was not written by a tuning.
    """
    file = path / FILE if is_folder(path) else path
    content = read_json(file, todo="Create it with: jumar tune speed RECIPE")
    if content.get("format") != _FORMAT:
        raise UserError(
            f"the format is {content.get('format')!r}, not {_FORMAT}",
            where=str(file),
            todo="The file was written by another version of jumar; tune again.",
        )
    validity = _mapping(content, "validity", file)
    recipe, state, weights = validity.get("recipe"), content.get("state"), content.get("weights")
    if (
        not isinstance(recipe, str)
        or state not in ("finished", "partial")
        or weights not in ("identical", "rounding")
    ):
        raise UserError("the recipe, state or weights are not valid", where=str(file))
    environment = _texts(content, "environment", file)
    settings = _texts(content, "settings", file)
    _check_variables(environment, file)
    _check_fields(settings, file)
    return Tuned(
        state=state,
        validity=Validity(
            recipe=recipe,
            fields=_mapping(validity, "fields", file),
            machine=_mapping(validity, "machine", file),
            versions=_mapping(validity, "versions", file),
        ),
        settings=settings,
        environment=environment,
        weights=weights,
        measured=_mapping(content, "measured", file),
    )


def validity_of(name: str, recipe: Recipe, *, device: str, device_name: str) -> Validity:
    """Return the present state: the recipe, this machine with a device, and its versions."""
    environment = inspect_environment()
    return Validity(
        recipe=name,
        fields=effective_fields(recipe),
        machine={
            "processor": environment.processor.name,
            "cores": environment.processor.usable_cores,
            "device": device,
            "device_name": device_name,
        },
        versions={key: value for key, value in environment.versions.items() if value},
    )


def effective_fields(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that affect a step, as JSON values."""
    return {
        row.path: json.loads(json.dumps(row.value, default=str))
        for row in describe(recipe)
        if not row.path.startswith(_WITHOUT_EFFECT)
    }


def _check_variables(environment: Mapping[str, str], file: Path) -> None:
    """Reject variables that no tuning sets: some make Python or the system's loader run code.

    Raises:
        UserError: There is such a variable.
    """
    for name, value in environment.items():
        is_foreign = name == "LD_PRELOAD" and not _PRELOADED.fullmatch(value)
        if name not in VARIABLES or is_foreign:
            raise UserError(
                f"sets {name}={value}, which no tuning does",
                where=str(file),
                todo="If you want this value, set it yourself in the shell.",
            )


def _check_fields(settings: Mapping[str, str], file: Path) -> None:
    """Reject fields that no tuning sets, because they would change the training unnoticed.

    Raises:
        UserError: There is such a field.
    """
    for name in settings:
        if name not in FIELDS and not name.endswith(".fused"):
            raise UserError(
                f"sets {name}, which no tuning does",
                where=str(file),
                todo=f"If you want this value, set it yourself: --set {name}=...",
            )


def _mapping(content: Mapping[str, Any], name: str, file: Path) -> dict[str, Any]:
    value = content.get(name)
    if not isinstance(value, dict):
        raise UserError(f"'{name}' is not an object", where=str(file))
    return cast("dict[str, Any]", value)


def _texts(content: Mapping[str, Any], name: str, file: Path) -> dict[str, str]:
    values = _mapping(content, name, file)
    if not all(isinstance(value, str) for value in values.values()):
        raise UserError(f"'{name}' contains a value that is not a text", where=str(file))
    return values


def _shown(value: object) -> str:
    return "missing" if value is None else str(value)
