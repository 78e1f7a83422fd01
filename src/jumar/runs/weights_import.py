"""Import TensorFlow weights into a recipe's network: `jumar weights import`.

Names are matched and shapes compared before any value is read, and nothing is written if something
does not match, unless a partial import was requested.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save

from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, write_bytes
from jumar.ground.paths import exists, is_file, is_folder, unwritable
from jumar.recipes.first_stage import keep_first_stage
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import import_modules
from jumar.runs.weights_exchange import Network, Weights, listed, network_named
from jumar.runs.weights_steps import finished_steps
from jumar.settings import to_json
from jumar.training.checkpoint import NotWrittenError, write_checkpoint
from jumar.training.checkpoint_state import SavedState
from jumar.training.run_directory import RunDirectory, read_json, write_json
from jumar.weights.frozen_graph import FrozenConstants
from jumar.weights.matching import Match, Matching, match_names
from jumar.weights.slots import SlotMatching, match_slots
from jumar.weights.tensor_files import SAFETENSORS, TensorFile, open_tensorflow
from jumar.weights.tensor_types import TensorEntry


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """The options of `jumar weights import`.

    Attributes:
        file: A TensorFlow checkpoint or a frozen graph.
        to: A `.safetensors` file, or a new run directory.
        partial: Import what matches even if not everything does.
        raw: Write the weights as trained into a `.safetensors` file, not their averages.
    """

    recipe: str
    file: Path
    to: Path
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    partial: bool = False
    raw: bool = False


def import_weights(request: ImportRequest) -> list[str]:
    """Import the weights of a TensorFlow file into a recipe's network.

    Returns:
        The lines of a summary.

    Raises:
        UserError: A file cannot be read or written, nothing matches, or something does not match
            and `partial` is not set.
    """
    to_file = request.to.suffix == SAFETENSORS
    _check_is_free(request.to)
    import_modules(request.imports)
    file = open_tensorflow(request.file)
    entries = {name: file.entry(name) for name in file.names()}
    # Initial values are only needed for weights missing in the file, which `partial` allows.
    network = network_named(
        request.recipe, request.assignments, entries, initialized=request.partial
    )
    if network.recipe is None and not to_file:
        raise UserError(
            f"a run cannot be created, since there is no recipe '{request.recipe}' yet",
            where="--to",
            todo="Give a file name that ends in .safetensors.",
        )
    matching = match_names(network.names, entries, network.shapes)
    # Most constants of a frozen graph are sizes and axes, but a checkpoint's variables are weights.
    complete = _is_complete(matching, leftover_counts=not isinstance(file, FrozenConstants))
    if not matching.matches or not (complete or request.partial):
        raise _mismatch_error(
            request, matching, _fitting_assignments(network, entries, request.file)
        )
    counted_steps = finished_steps(file, entries, network)
    step = counted_steps.step
    slots = match_slots(network.names, matching.matches, entries, network.trained)
    with_slots = not to_file and complete and slots.is_complete and network.keeps_slots
    if with_slots:
        ignored = [name for name in matching.ignored if name not in slots.sources]
        matching = replace(matching, ignored=ignored)
    lines = [
        f"{request.file}: {len(matching.matches)} of {len(network.names.variables)} weights of "
        f"{request.recipe}, step {step}",
        *([f"  {counted_steps.remark}"] if counted_steps.remark else []),
        *_listed(matching),
    ]
    plain = _filled(network, file, {match: match.raw for match in matching.matches})
    averages = None
    if matching.has_averages:
        averages = _filled(
            network, file, {match: match.average or match.raw for match in matching.matches}
        )
    if to_file:
        exported = plain if averages is None or request.raw else averages
        _write_safetensors(request.to, exported)
        kind = "averaged weights" if exported is averages else "weights as trained"
        return [*lines, f"written: {request.to} ({kind})"]
    assert network.recipe is not None
    state = SavedState()
    if with_slots:
        state = _optimizer_state(file, slots, step)
        lines.append(
            f"  with the optimizer state ({len(slots.sources)}): `jumar train --resume` "
            "continues from it"
        )
    return [*lines, *_write_run(request, network.recipe, step, plain, averages, state)]


def _optimizer_state(file: TensorFile, slots: SlotMatching, step: int) -> SavedState:
    names = {name for slot in slots.found for name in slot.powers or ()}
    powers = {name: float(file.read(name).item()) for name in names}
    return SavedState(
        slots={
            f"{slot.variable.name}/{key}": slot.variable.to_torch(file.read(name)).float()
            for slot in slots.found
            for key, name in slot.slots.items()
        },
        values={
            "step": step,
            "powers": {
                slot.variable.name: [powers[name] for name in slot.powers]
                for slot in slots.found
                if slot.powers
            },
        },
    )


def _check_is_free(to: Path) -> None:
    if exists(to):
        raise UserError(
            f"'{to}' already exists",
            where="--to",
            todo="Give a new run directory, or a file name that ends in .safetensors.",
        )


def _is_complete(matching: Matching, *, leftover_counts: bool) -> bool:
    problems = (matching.missing, matching.wrong_shape, matching.unnamed)
    return not any(problems) and not (leftover_counts and matching.leftover)


def _fitting_assignments(
    network: Network, entries: Mapping[str, TensorEntry], file: Path
) -> Sequence[str]:
    """Return assignments that fit the network to the file, if the recipe can derive them."""
    if network.recipe is None:
        return ()
    beside = (file if is_folder(file) else file.parent) / "bert_config.json"
    config = read_json(beside) if is_file(beside) else {}
    # Its "gelu" is the tanh approximation, which Hugging Face's files call "gelu_new".
    config.pop("hidden_act", None)
    shapes = {name: entry.shape for name, entry in entries.items()}
    return network.recipe.settings_of_weights(shapes, config)


def _mismatch_error(
    request: ImportRequest, matching: Matching, assignments: Sequence[str]
) -> UserError:
    extent = "only in part" if matching.matches else "not at all"
    suggestion = (
        "Give the network the file's sizes: "
        f"{' '.join(f'--set {assignment}' for assignment in assignments)}"
        if assignments
        else "Change the recipe with --set until its network matches the file "
        f"(its fields: jumar recipes show {request.recipe})"
    )
    advice = f"Nothing was written. {suggestion}"
    if matching.matches:
        advice += "; --partial imports what matches and leaves the rest at its initial values"
    return UserError(
        f"matches '{request.recipe}' {extent}",
        where=str(request.file),
        todo="\n".join([f"matched: {len(matching.matches)}", *_listed(matching), f"{advice}."]),
    )


def _listed(matching: Matching) -> list[str]:
    groups = (
        ("missing in the file", [f"{v.tf_name} for {v.name}" for v in matching.missing]),
        ("with a different shape", [str(wrong) for wrong in matching.wrong_shape]),
        ("without a TensorFlow name", matching.unnamed),
        ("left over in the file", matching.leftover),
        ("not weights", matching.ignored),
    )
    averages = sum(bool(match.average) for match in matching.matches)
    lines = [f"  with averages: {averages}"] if averages else []
    for title, names in groups:
        if names:
            separator = "\n    " if title == "with a different shape" else ", "
            lines.append(f"  {listed(title, names, separator)}")
    return lines


def _filled(network: Network, file: TensorFile, sources: Mapping[Match, str]) -> Weights:
    """Return the network's weights, replaced by the file's where it has them."""
    weights = dict(network.weights)
    for match, source in sources.items():
        original = weights[match.variable.name]
        weights[match.variable.name] = match.variable.to_torch(file.read(source)).to(original.dtype)
    if network.recipe is None:
        matched_names = {match.variable.name for match in sources}
        return {name: weight for name, weight in weights.items() if name in matched_names}
    return weights


def _write_safetensors(path: Path, weights: Weights) -> None:
    try:
        # Not `save_file`, which creates files with owner-only permissions regardless of the umask.
        write_bytes(path, save({name: weight.clone() for name, weight in weights.items()}))
    except SafetensorError as error:
        raise unwritable(path, error) from error


def _write_run(
    request: ImportRequest,
    recipe: Recipe,
    step: int,
    plain: Weights,
    averages: Weights | None,
    state: SavedState,
) -> list[str]:
    """Write a run directory as training would, with the optimizer state if there is any."""
    lines: list[str] = []
    wants_averages = recipe.training.ema_decay > 0
    if wants_averages and averages is None:
        lines.append("the file has no averages; they start as copies of the weights")
        averages = plain
    elif averages is not None and not wants_averages:
        lines.append(
            "the recipe does not average weights: `jumar evaluate` scores the weights as trained, "
            "or the averages with --set training.ema_decay=0.999"
        )
    message, note = "the run cannot be written", "Nothing was left behind."
    try:
        with folder_beside(request.to, what=message, more=note) as folder:
            beside = RunDirectory(folder)
            write_checkpoint(
                beside.checkpoints,
                step=step,
                epoch=0.0,
                model=plain,
                ema=averages,
                state=state,
                batch={},
            )
            write_json(beside.environment, asdict(inspect_environment()))
            recipe_facts = {
                "recipe": request.recipe,
                "imports": list(request.imports),
                "settings": to_json(recipe),
            }
            write_json(beside.recipe, recipe_facts)
            keep_first_stage(recipe, beside)
    except NotWrittenError as error:
        raise unwritable(request.to, error, what=message, more=note) from error
    return [*lines, f"written: {request.to} (a run at step {step})"]
