"""Open a run's network with its weights on a device, without opening data.

Used by `jumar generate`, `denoise`, `predict` and `weights export`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jumar.devices.registry import open_device
from jumar.models.unfilled import Unfilled
from jumar.recipes.recipe import Recipe
from jumar.recipes.resolved import read_resolved, settled, with_data_in_place
from jumar.recipes.stored import stored_recipe
from jumar.recipes.trained import Trained
from jumar.runs.context import apply_settings
from jumar.settings import override
from jumar.training.checkpoint import load_weights
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.training.profiling.ranges import named_layers
from jumar.training.run_directory import RunDirectory
from jumar.training.state import load_exactly


@dataclass(frozen=True, kw_only=True)
class TrainedRequest:
    """The options that select a run's weights and a device.

    Attributes:
        which: `last`, `best`, or a step.
        use_ema: Use the averaged weights if the checkpoint has them.
        assignments: Changed fields of the recipe, such as `precision.mode=...`.
    """

    run_dir: Path
    which: str = "last"
    use_ema: bool = True
    assignments: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    device: str = "auto"


def open_trained(request: TrainedRequest) -> Trained:
    """Open the network of a run with the weights of one of its checkpoints.

    Raises:
        UserError: There is no such run or checkpoint, or its weights do not fit the network.
    """
    run = RunDirectory(request.run_dir)
    name, _, recipe = stored_recipe(run, request.imports)
    # The user's settings after those that the run resolved, which would undo them.
    recipe = override(settled(recipe, run), request.assignments)
    resolved = read_resolved(run)
    checkpoint = find_checkpoint(run.checkpoints, request.which, run.headline())
    device = open_device(request.device)
    policy = apply_settings(recipe, device)
    ema = request.use_ema and checkpoint.has_ema
    path = checkpoint.model_file(ema=ema)
    weights = load_weights(path)
    shapes = {key: value.shape for key, value in weights.items()}
    # Runs of earlier versions, and imported ones, do not record their number of classes.
    recipe = recipe.fitted_to(shapes)
    with Unfilled():
        model = recipe.build_model()
    load_exactly(model, weights, str(path))
    # Layers of an objective, such as a front end, are not in the network.
    policy.keep_layers(named_layers(model, ()), are_all=False)
    return Trained(
        recipe=recipe,
        name=name,
        model=model.to(device.torch).eval(),
        checkpoint=checkpoint,
        weights="ema" if ema else "model",
        outputs=() if resolved is None else resolved.outputs,
        device=device,
        policy=policy,
    )


def placed_recipe(trained: Trained, request: TrainedRequest, say: Callable[[str], None]) -> Recipe:
    """Return the recipe of an opened run with the current paths of its data.

    Args:
        trained: The run.
        request: The request that it was opened with.
        say: Prints a line about a vocabulary that moved; the data itself may not be needed.
    """

    def notice(line: str) -> None:
        if line.startswith("model.vocabulary"):
            say(line)

    run = RunDirectory(request.run_dir)
    return with_data_in_place(trained.recipe, run, notice, request.assignments)
