"""Draw pictures with a trained network: `jumar generate`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from jumar.data.pixels.picture_grid import picture_grid, save_png
from jumar.errors import UserError
from jumar.recipes.drawing import Artist, DrawingWish, DrawsPictures
from jumar.recipes.trained import TrainedRequest, open_trained
from jumar.tasks.sampling import BATCH

_MOST_IN_GRID = 256
"""Beyond, nobody sees single pictures, and the grid would not fit into memory some time."""
_MOST_LINES = 8


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """What `jumar generate` was asked for.

    Attributes:
        to: A folder that does not exist or is empty.
        truncation: None for that of the training.
        interpolate: Pictures on each line from one picture to another; 0 for no lines.
        which: `last`, `best`, or a step.
        batch: Pictures made at once.
    """

    run_dir: Path
    to: Path
    num: int = 64
    seed: int = 1
    truncation: float | None = None
    interpolate: int = 0
    which: str = "last"
    use_ema: bool = True
    batch: int = BATCH
    assignments: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    device: str = "auto"


def generate(request: GenerateRequest, say: Callable[[str], None] = print) -> None:
    """Write pictures of a trained network, one file each, and a grid of them.

    Picture number n depends on the weights, the seed, n and, where the network has one, the
    truncation alone, not on how many are made. `picture-000000.png` and so on, `grid.png` with the
    first 256 at most, and, where asked for, `interpolation.png`, whose lines go from picture 0 to
    1, from 2 to 3 and so on.

    Args:
        request: What and where.
        say: Takes lines for a person.

    Raises:
        UserError: Numbers that make no sense, a folder with something in it, a run whose network
            draws no pictures, or a wish that it cannot fulfil.
    """
    _check(request)
    trained = open_trained(
        TrainedRequest(
            run_dir=request.run_dir,
            which=request.which,
            use_ema=request.use_ema,
            assignments=request.assignments,
            imports=request.imports,
            device=request.device,
        )
    )
    try:
        recipe = trained.recipe
        if not isinstance(recipe, DrawsPictures):
            raise UserError(
                f"the recipe '{trained.name}' draws no pictures",
                where=str(request.run_dir),
                todo="Give a run of a recipe such as biggan128 or vqvae-prior.",
            )
        wish = DrawingWish(seed=request.seed, truncation=request.truncation, batch=request.batch)
        artist = recipe.open_artist(trained, wish)
        with torch.inference_mode():
            _write(artist, request)
    finally:
        trained.policy.close()
    weights = "averaged weights" if trained.weights == "ema" else "weights"
    manner = f", {artist.manner}" if artist.manner else ""
    say(
        f"{request.num} {'picture' if request.num == 1 else 'pictures'} by the {weights} of step "
        f"{trained.checkpoint.step}, seed {request.seed}{manner}: {request.to / 'grid.png'}"
    )


def _write(artist: Artist, request: GenerateRequest) -> None:
    # Lines first: a network that has none is refused before anything is written.
    lines = artist.lines(_MOST_LINES, request.interpolate) if request.interpolate else None
    shown: list[Tensor] = []
    for first in range(0, request.num, request.batch):
        pictures = artist.draw(first, min(request.batch, request.num - first))
        for number, picture in enumerate(pictures, start=first):
            save_png(picture.permute(1, 2, 0), request.to / f"picture-{number:06d}.png")
        shown.append(pictures[: max(0, _MOST_IN_GRID - first)])
    grid = torch.cat(shown)
    save_png(picture_grid(grid, columns=math.isqrt(len(grid))), request.to / "grid.png")
    if lines is not None:
        strip = picture_grid(lines, columns=request.interpolate)
        save_png(strip, request.to / "interpolation.png")


def _check(request: GenerateRequest) -> None:
    if request.num < 1:
        raise UserError(f"{request.num} pictures cannot be made", where="--num", todo="1 or more.")
    if request.batch < 1:
        raise UserError(f"a batch of {request.batch} is none", where="--batch", todo="1 or more.")
    if request.interpolate == 1 or request.interpolate < 0:
        raise UserError(
            f"a line of {request.interpolate} pictures has no two ends",
            where="--interpolate",
            todo="2 or more, or 0 for no lines.",
        )
    if request.truncation is not None and not 0 < request.truncation < math.inf:
        raise UserError(
            f"nothing is left of a normal distribution cut at {request.truncation:g}",
            where="--truncation",
            todo="A number above 0; small ones give similar pictures of better quality.",
        )
    if request.to.exists() and (not request.to.is_dir() or any(request.to.iterdir())):
        raise UserError(
            "there is something already",
            where=f"--to {request.to}",
            todo="Give a folder that does not exist or is empty.",
        )
