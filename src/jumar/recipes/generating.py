"""Draw pictures with a trained network: `jumar generate`."""

import math
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumar.data.pixels.picture_grid import picture_grid, save_png
from jumar.errors import UserError
from jumar.paths import exists, is_folder
from jumar.recipes.drawing import Artist, DrawingWish, DrawsPictures
from jumar.recipes.trained import TrainedRequest, open_trained
from jumar.tasks.sampling import BATCH
from jumar.training.progress import Console
from jumar.training.rehearsal import size_text
from jumar.training.run_directory import read_json, write_json
from jumar.training.signals import StopRequest, listening

_MOST_IN_GRID = 256
"""Beyond, nobody sees single pictures, and the grid would not fit into memory some time."""
_MOST_LINES = 8
_MOST_ON_A_LINE = 1_000
_MOST_PICTURES = 1_000_000
"""Their names have six digits."""
_UNFINISHED = "unfinished.json"
"""Lies in the folder until all pictures do, and says which ones they are to be."""


@dataclass(frozen=True, kw_only=True)
class GenerateRequest(TrainedRequest):
    """What `jumar generate` was asked for, besides the weights.

    Attributes:
        to: A folder that does not exist or is empty.
        resume: Keep the pictures of a call that was stopped, and make the others.
        truncation: None for that of the training.
        interpolate: Pictures on each line from one picture to another; 0 for no lines.
        batch: Pictures made at once.
    """

    to: Path
    num: int = 64
    seed: int = 1
    truncation: float | None = None
    interpolate: int = 0
    batch: int = BATCH
    resume: bool = False


def generate(request: GenerateRequest, say: Callable[[str], None] = print) -> int:
    """Write pictures of a trained network, one file each, and a grid of them.

    Picture number n depends on the weights, the seed, n and, where the network has one, the
    truncation alone, not on how many are made. `picture-000000.png` and so on, `grid.png` with the
    first 256 at most, and, where asked for, `interpolation.png`, whose lines go from picture 0 to
    1, from 2 to 3 and so on.

    Args:
        request: What and where.
        say: Takes lines for a person.

    Returns:
        The exit code: 0, or that of the signal that stopped it between two batches.

    Raises:
        UserError: Numbers that make no sense, a folder with something in it, a run whose network
            draws no pictures, or a wish that it cannot fulfil.
    """
    _check(request)
    trained = open_trained(request)
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
        record = {
            "run": str(request.run_dir.resolve()),
            "step": trained.checkpoint.step,
            "weights": trained.weights,
            "seed": request.seed,
            "manner": artist.manner,
        }
        _check_unfinished(request, record)
        with torch.inference_mode(), listening() as stop, _no_empty_folder(request.to):
            done = _write(artist, request, record, stop)
        if done < request.num:
            say(f"stopped after {done} pictures; go on with the same command and --resume")
            return stop.exit_code
    finally:
        trained.policy.close()
    weights = "averaged weights" if trained.weights == "ema" else "weights"
    manner = f", {artist.manner}" if artist.manner else ""
    say(
        f"{request.num} {'picture' if request.num == 1 else 'pictures'} by the {weights} of step "
        f"{trained.checkpoint.step}, seed {request.seed}{manner}: {request.to / 'grid.png'}"
    )
    return 0


def _write(
    artist: Artist, request: GenerateRequest, record: Mapping[str, Any], stop: StopRequest
) -> int:
    """All files; how many pictures are there in the end."""
    # Lines first: a network that has none is refused before anything is written.
    lines = artist.lines(_MOST_LINES, request.interpolate) if request.interpolate else None
    write_json(request.to / _UNFINISHED, record)
    shown: list[Tensor] = []
    with Console().bar("pictures", request.num) as bar:
        for first in range(0, request.num, request.batch):
            if stop:
                return first
            count = min(request.batch, request.num - first)
            files = [request.to / f"picture-{first + n:06d}.png" for n in range(count)]
            in_grid = max(0, _MOST_IN_GRID - first)
            if in_grid or not all(exists(file) for file in files):
                pictures = artist.draw(first, count)
                for file, picture in zip(files, pictures, strict=True):
                    if not exists(file):
                        save_png(picture.permute(1, 2, 0), file)
                shown.append(pictures[:in_grid])
                if first == 0:
                    _check_disk(files, request)
            bar.show(first + count)
    grid = torch.cat(shown)
    save_png(picture_grid(grid, columns=math.isqrt(len(grid))), request.to / "grid.png")
    if lines is not None:
        strip = picture_grid(lines, columns=request.interpolate)
        save_png(strip, request.to / "interpolation.png")
    (request.to / _UNFINISHED).unlink()
    return request.num


def _check_disk(files: Sequence[Path], request: GenerateRequest) -> None:
    """That the other pictures will find room if they are as large as the first ones."""
    there = sum(1 for _ in request.to.glob("picture-*.png"))
    each = sum(file.stat().st_size for file in files) / len(files)
    left = request.num - there
    needed = each * left
    free = shutil.disk_usage(request.to).free
    if free < needed:
        raise UserError(
            f"{left} more pictures need about {size_text(needed)}, and {size_text(free)} are free",
            where=f"--to {request.to}",
            todo="Free some space and go on with --resume, or ask for fewer.",
        )


@contextmanager
def _no_empty_folder(place: Path) -> Generator[None]:
    """A folder that was made for pictures and got none is gone again."""
    made = not exists(place)
    try:
        yield
    finally:
        if made:
            with suppress(OSError):
                place.rmdir()


def _check_unfinished(request: GenerateRequest, record: Mapping[str, Any]) -> None:
    """That a call which goes on makes the pictures that the stopped one would have made."""
    before = request.to / _UNFINISHED
    if not exists(before):
        return
    earlier = read_json(before)
    odd = next((name for name in record if earlier.get(name) != record[name]), "")
    if odd:
        raise UserError(
            f"the pictures there have another {odd}: {earlier.get(odd)}, not {record[odd]}",
            where=str(before),
            todo="Give the options of the call that was stopped, or another folder.",
        )


def _check(request: GenerateRequest) -> None:
    if request.num < 1:
        raise UserError(f"{request.num} pictures cannot be made", where="--num", todo="1 or more.")
    if request.num > _MOST_PICTURES:
        raise UserError(
            f"{request.num} pictures are too many for one folder",
            where="--num",
            todo=f"At most {_MOST_PICTURES}; another --seed gives others, into another folder.",
        )
    if request.interpolate > _MOST_ON_A_LINE:
        raise UserError(
            f"{request.interpolate} pictures do not fit on a line",
            where="--interpolate",
            todo=f"At most {_MOST_ON_A_LINE}.",
        )
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
    there = exists(request.to) and (not is_folder(request.to) or any(request.to.iterdir()))
    unfinished = exists(request.to / _UNFINISHED)
    if there and not (request.resume and unfinished):
        raise UserError(
            "there is something already",
            where=f"--to {request.to}",
            todo="Give a folder that does not exist or is empty"
            + ("; or go on with the call that was stopped: --resume" if unfinished else "."),
        )
