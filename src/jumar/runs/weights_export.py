"""Export a recipe's weights to TensorFlow files: `jumar weights export`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfVariable
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import import_modules
from jumar.recipes.resolved import settled
from jumar.recipes.stored import stored_recipe
from jumar.runs.weights_exchange import Network, Weights, network_named, network_of
from jumar.runs.weights_frozen import export_frozen
from jumar.settings import override
from jumar.training.checkpoint import (
    Checkpoint,
    check_weights_file,
    load_state,
    load_weights,
)
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.training.checkpoint_state import SavedState
from jumar.training.optimizers.slots import stored_powers, stored_slots
from jumar.training.run_directory import RunDirectory
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.checkpoint_paths import check_free
from jumar.weights.matching import AVERAGE, GLOBAL_STEP, unnamed_weights
from jumar.weights.slots import trained_variables
from jumar.weights.tensor_files import SAFETENSORS, SafetensorsFile
from jumar.weights.tensor_types import Array, shape_text

_AVERAGE_NAMES = {
    "beside": f"under NAME{AVERAGE}",
    "swapped": f"under NAME, and the weights as trained under NAME{AVERAGE}",
}


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """The weights to export and the files to write.

    Attributes:
        source: A run directory, or a `.safetensors` file together with `recipe`.
        out: Prefix of the checkpoint's files; None for `tf1/model.ckpt-STEP` in the run.
        like: A frozen graph to copy with these weights, instead of writing a checkpoint.
        which: Checkpoint of the run: `last`, `best`, or a step.
        recipe: The recipe that a `.safetensors` file belongs to.
        assignments: Changed fields of the recipe.
    """

    source: Path
    out: Path | None = None
    like: Path | None = None
    which: str = "last"
    recipe: str | None = None
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()


class _LazyArrays(Mapping[str, Array]):
    """Arrays that are created one at a time when they are written."""

    def __init__(self, makers: Mapping[str, Callable[[], Array]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Array:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def export_weights(request: ExportRequest) -> list[str]:
    """Write the weights of a run, or of a `.safetensors` file, for TensorFlow.

    Returns:
        The lines of a summary.

    Raises:
        UserError: There is no such run or checkpoint, the network has no TensorFlow names, or the
            files cannot be written.
    """
    import_modules(request.imports)
    step = 0
    averages: Weights | None = None
    slots: Mapping[str, Callable[[], Array]] = {}
    if request.source.suffix == SAFETENSORS:
        network, out = _of_file(request)
    else:
        network, averages, checkpoint = _of_run(request)
        step = checkpoint.step
        slots = slot_makers(network, load_state(checkpoint))
        number = step + network.names.counting.first_number
        name = f"model.ckpt-{number}" if request.like is None else f"frozen-{step}.pb"
        out = request.out or request.source / "tf1" / name
    if request.like is not None:
        return export_frozen(network, averages or network.weights, request.like, out)
    check_free(out, ours=request.out is None)
    makers = weight_makers(network, averages)
    num_averages = len(makers) - len(network.names.variables)
    global_step = step * network.names.counting.global_step
    step_maker = {GLOBAL_STEP: lambda: np.array(global_step, dtype=np.int64)}
    write_bundle(out, _LazyArrays({**makers, **slots, **step_maker}))
    lines = [f"{len(network.names.variables)} weights of {network.name}, step {step}"]
    if global_step != step:
        lines.append(f"  global_step {global_step}, counted as in the original")
    if num_averages:
        lines.append(f"  with averages ({num_averages}): {_AVERAGE_NAMES[network.names.averages]}")
    elif averages is not None:
        lines.append("  without the run's averages, since the original's checkpoints have none")
    unnamed = unnamed_weights(network.names, network.weights)
    if slots:
        lines.append(f"  with the optimizer state ({len(slots)})")
    elif network.names.optimizers and request.source.suffix != SAFETENSORS:
        reason = (
            "which this checkpoint does not store by name"
            if network.keeps_slots
            else "since the original has another kind of optimizer"
        )
        lines.append(f"  without the optimizer state, {reason}")
    if unnamed:
        lines.append(f"  not exported, without a TensorFlow name: {', '.join(unnamed)}")
    return [*lines, f"written: {out}"]


def weight_makers(network: Network, averages: Weights | None) -> dict[str, Callable[[], Array]]:
    """Return a function per variable of the checkpoint, with averages if the original has them."""
    names = network.names
    makers: dict[str, Callable[[], Array]] = {}

    def add(tf_name: str, variable: TfVariable, weights: Weights) -> None:
        makers[tf_name] = lambda: variable.to_tensorflow(weights[variable.name])

    for variable in names.variables:
        plain_name, average_name = variable.tf_name, variable.tf_name + AVERAGE
        has_average = (
            averages is not None
            and names.averages != "none"
            and variable.name in network.trained
            and re.search(names.averaged, variable.tf_name) is not None
        )
        if averages is None or not has_average:
            add(plain_name, variable, network.weights)
        elif names.averages == "swapped":
            add(plain_name, variable, averages)
            add(average_name, variable, network.weights)
        else:
            add(plain_name, variable, network.weights)
            add(average_name, variable, averages)
    return makers


def slot_makers(network: Network, state: SavedState) -> dict[str, Callable[[], Array]]:
    """Return a function per slot of the original's optimizers; none if ours is of another kind.

    Args:
        network: The trained network.
        state: The state of the checkpoint, from a run or imported. Old checkpoints without the
            names of parameters have no slots to export.
    """
    if not network.keeps_slots:
        return {}
    all_slots, powers = stored_slots(state), stored_powers(state)
    makers: dict[str, Callable[[], Array]] = {}

    def add(tf_name: str, variable: TfVariable, value: Tensor) -> None:
        makers[tf_name] = lambda: variable.to_tensorflow(value)

    for variable, optimizer in trained_variables(network.names, network.trained):
        slots = all_slots.get(variable.name, {})
        if not set(optimizer.slots) <= set(slots):
            return {}
        for key, suffix in optimizer.slots.items():
            add(variable.tf_name + suffix, variable, slots[key])
        if optimizer.powers and variable.name in powers:
            for name, power in zip(optimizer.powers, powers[variable.name], strict=True):
                makers[name] = lambda power=power: np.array(power, dtype=np.float32)
    return makers


def _of_run(request: ExportRequest) -> tuple[Network, Weights | None, Checkpoint]:
    run = RunDirectory(request.source)
    name, _, recipe = stored_recipe(run, request.imports)
    if request.recipe not in (None, name):
        raise UserError(f"'{run}' contains a run of '{name}'", where="--recipe")
    recipe: Recipe = override(settled(recipe, run), request.assignments)
    checkpoint = find_checkpoint(run.checkpoints, request.which, run.headline())
    path = checkpoint.model_file(ema=False)
    weights = load_weights(path)
    recipe = recipe.fitted_to({key: value.shape for key, value in weights.items()})
    network = _with_weights(network_of(recipe, name), weights, path)
    averages = None
    if checkpoint.has_ema:
        path = checkpoint.model_file(ema=True)
        averages = _with_weights(network, load_weights(path), path).weights
    return network, averages, checkpoint


def _of_file(request: ExportRequest) -> tuple[Network, Path]:
    if request.recipe is None or request.out is None:
        raise UserError(
            "the recipe or the path of the result is missing, which a .safetensors file needs",
            where=str(request.source),
            todo=f"Add --recipe NAME and --out {'PREFIX' if request.like is None else 'FILE.pb'}.",
        )
    check_weights_file(request.source)
    file = SafetensorsFile(request.source)
    entries = {name: file.entry(name) for name in file.names()}
    network = network_named(request.recipe, request.assignments, entries)
    return _with_weights(network, load_weights(request.source), request.source), request.out


def _with_weights(network: Network, weights: Weights, path: Path) -> Network:
    """Return the network with the weights of a file, which must be complete."""
    unknown = next((name for name in weights if name not in network.weights), None)
    if unknown is not None:
        raise UserError(
            f"contains '{unknown}', which is not a weight of {network.name}",
            where=str(path),
            todo="Export with the recipe and settings of these weights.",
        )
    for name, expected in network.weights.items():
        weight = weights.get(name)
        if weight is None or weight.shape != expected.shape:
            shape = "missing" if weight is None else shape_text(tuple(weight.shape))
            raise UserError(
                f"'{name}' is {shape} instead of {shape_text(tuple(expected.shape))}",
                where=str(path),
                todo=f"Export with the recipe and settings of these weights, not {network.name}.",
            )
    return replace(network, weights=weights)
