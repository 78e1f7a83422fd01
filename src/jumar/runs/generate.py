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
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_folder
from jumar.ground.text import counted, size_text
from jumar.recipes.drawing import Artist, DrawingWish, DrawsPictures
from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.tasks.sampling import BATCH
from jumar.training.progress import Console
from jumar.training.run_directory import read_json, write_json
from jumar.training.signals import StopRequest, listening

_MOST_IN_GRID = 256
"""Beyond, nobody sees single pictures, and the grid would not fit into memory some time."""
_MOST_LINES = 8
_MOST_ON_A_LINE = 1_000
_MOST_PICTURES = 1_000_000
"""Their names have six digits."""
_GRID, _LINES = "grid.png", "interpolation.png"
_RECORD = "drawing.json"
"""Lies beside the pictures and says which ones they are, so that more of them can be drawn."""


@dataclass(frozen=True, kw_only=True)
class GenerateRequest(TrainedRequest):
    """What `jumar generate` was asked for, besides the weights.

    Attributes:
        to: A folder that does not exist or is empty, or with `resume` one of an earlier call.
        resume: Keep the pictures of an earlier call, and make the others.
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
    1, from 2 to 3 and so on, as far as there are such pictures.

    Args:
        request: What and where.
        say: Takes lines for a person.

    Returns:
        The exit code: 0, or that of the signal that stopped it between two batches.

    Raises:
        UserError: Numbers that make no sense, a folder with something in it, a run whose network
            does not generate pictures, or a wish that it cannot fulfil.
    """
    _check(request)
    trained = open_trained(request)
    try:
        recipe = trained.recipe
        if not isinstance(recipe, DrawsPictures):
            raise UserError(
                f"the recipe '{trained.name}' does not generate pictures",
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
        earlier = _earlier(request, record)
        if earlier.has_all(request):
            say(f"all {request.num} are there already: {request.to}")
            return 0
        # The grid of a folder with more pictures than are asked for now is that of all of them.
        total = max(request.num, earlier.finished)
        with torch.inference_mode(), listening() as stop, _no_empty_folder(request.to):
            done = _write(artist, request, record, earlier, total, stop)
        if done < total:
            say(
                f"stopped after {counted(done, 'picture')}; resume with the same command and "
                "--resume"
            )
            return stop.exit_code
    finally:
        trained.policy.close()
    weights = "averaged weights" if trained.weights == "ema" else "weights"
    manner = f", {artist.manner}" if artist.manner else ""
    say(
        f"{counted(request.num, 'picture')} by the {weights} of step "
        f"{trained.checkpoint.step}, seed {request.seed}{manner}: {request.to / 'grid.png'}"
    )
    return 0


@dataclass(frozen=True, kw_only=True)
class _Earlier:
    """What an earlier call has left in the folder.

    Attributes:
        finished: With how many pictures it came to its end; 0 where it did not.
        steps: Pictures a line of its `interpolation.png`; 0 without one.
    """

    finished: int = 0
    steps: int = 0

    def has_all(self, request: GenerateRequest) -> bool:
        """Whether nothing is left to be made, nor anything that was lost since."""
        if self.finished < request.num or request.interpolate not in (0, self.steps):
            return False
        names = [_name(number) for number in range(request.num)]
        names += [_GRID, _LINES] if request.interpolate else [_GRID]
        return all(exists(request.to / name) for name in names)


def _write(
    artist: Artist,
    request: GenerateRequest,
    record: Mapping[str, Any],
    earlier: _Earlier,
    total: int,
    stop: StopRequest,
) -> int:
    """All files; how many pictures are there in the end."""
    # Lines first: a network that has none is refused before anything is written.
    lines = None
    if request.interpolate:
        lines = artist.lines(min(_MOST_LINES, request.num // 2), request.interpolate)
    write_json(request.to / _RECORD, {**record, "finished": earlier.finished})
    shown: list[Tensor] = []
    with Console().bar("pictures", total) as bar:
        for first in range(0, total, request.batch):
            if stop:
                return first
            count = min(request.batch, total - first)
            files = [request.to / _name(first + n) for n in range(count)]
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
    save_png(picture_grid(grid, columns=math.isqrt(len(grid))), request.to / _GRID)
    if lines is not None:
        save_png(picture_grid(lines, columns=request.interpolate), request.to / _LINES)
    steps = request.interpolate or earlier.steps
    write_json(request.to / _RECORD, {**record, "finished": total, "interpolate": steps})
    return total


def _name(number: int) -> str:
    return f"picture-{number:06d}.png"


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.glob("picture-*.png"))


def _check_disk(files: Sequence[Path], request: GenerateRequest) -> None:
    """That the other pictures will find room if they are as large as the first ones."""
    each = sum(file.stat().st_size for file in files) / len(files)
    left = request.num - _count(request.to)
    needed = each * left
    free = shutil.disk_usage(request.to).free
    if free < needed:
        raise UserError(
            f"{counted(left, 'more picture')} take about {size_text(needed)}, and "
            f"{size_text(free)} are free",
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


def _earlier(request: GenerateRequest, record: Mapping[str, Any]) -> _Earlier:
    """What is there already; an error where those are not pictures that this call would make."""
    place = request.to / _RECORD
    if not exists(place):
        return _Earlier()
    earlier = read_json(place)
    odd = next((name for name in record if earlier.get(name) != record[name]), "")
    if odd:
        raise UserError(
            f"the pictures there have another {odd}: {earlier.get(odd)}, not {record[odd]}",
            where=str(place),
            todo="Give the options of the call that made them, or another folder.",
        )
    finished, steps = earlier.get("finished", 0), earlier.get("interpolate", 0)
    if not (isinstance(finished, int) and isinstance(steps, int)):
        raise UserError("its numbers are none", where=str(place), todo="Give another folder.")
    return _Earlier(finished=finished, steps=steps)


def _check(request: GenerateRequest) -> None:
    if request.num < 1:
        raise UserError(f"cannot generate {request.num} pictures", where="--num", todo="1 or more.")
    if request.num > _MOST_PICTURES:
        raise UserError(
            f"{request.num} pictures are too many for one folder",
            where="--num",
            todo=f"At most {_MOST_PICTURES}; another --seed gives others, into another folder.",
        )
    if request.interpolate > _MOST_ON_A_LINE:
        raise UserError(
            f"cannot interpolate with {request.interpolate} pictures",
            where="--interpolate",
            todo=f"At most {_MOST_ON_A_LINE}.",
        )
    if request.batch < 1:
        raise UserError(f"a batch of {request.batch} pictures", where="--batch", todo="1 or more.")
    if request.interpolate == 1 or request.interpolate < 0:
        raise UserError(
            f"cannot interpolate with {counted(request.interpolate, 'picture')}",
            where="--interpolate",
            todo="Give 2 or more, or 0 for no interpolation.",
        )
    if request.truncation is not None and not 0 < request.truncation < math.inf:
        raise UserError(
            f"cannot truncate a normal distribution at {request.truncation:g}",
            where="--truncation",
            todo="Give a number above 0; small ones give better but less varied pictures.",
        )
    if request.interpolate and request.num < 2:
        raise UserError(
            "a line goes from one picture to another, and --num asks for one",
            where="--interpolate",
            todo="Set --num to 2 or more, or leave out --interpolate.",
        )
    there = exists(request.to) and (not is_folder(request.to) or any(request.to.iterdir()))
    is_drawing = exists(request.to / _RECORD)
    if there and not (request.resume and is_drawing):
        raise UserError(
            "already exists and is not empty",
            where=f"--to {request.to}",
            todo=f"{_count(request.to)} pictures are there. Give another place, or keep them "
            "and go on with the others: --resume"
            if is_drawing
            else "Give a folder that does not exist or is empty.",
        )
