"""Find the words in images with a trained text detector: `jumar detect`.

Images go through the network one at a time, as in evaluation. The result folder is written
completely or not at all.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from numpy.typing import NDArray

from jumar.data.loading.faults import FaultTally
from jumar.data.pixels.outlines import FOUND, with_outlines
from jumar.data.pixels.picture_files import write_picture
from jumar.data.pixels.video import VideoWriter
from jumar.data.polygons.augmentation import resized
from jumar.data.polygons.detection_set import input_size
from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.tiles import seamless, tiles_of
from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, write_text
from jumar.ground.paths import exists
from jumar.ground.text import counted
from jumar.recipes.stored import stored_recipe
from jumar.recipes.text_detection import DetectionRecipe
from jumar.recipes.trained import Trained
from jumar.runs.context import print_unreadable
from jumar.runs.denoise_work import already_exists
from jumar.runs.detect_sources import Source, open_source
from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.tasks.text_detection import Reader
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, write_json

_MIN_TILE = 64


@dataclass(frozen=True, kw_only=True)
class DetectRequest(TrainedRequest):
    """The options of `jumar detect`, besides the weights.

    Attributes:
        source: An image, a folder or zip with images anywhere in it, or a video.
        to: A new folder.
        tile: Side of the tiles in which larger images are processed at full size; 0 for the whole
            image, shrunk to `data.eval_longest`.
        every: Process every Nth frame of a video.
        drawn: Also write the images with the outlines of their words.
        skip_corrupt: Unreadable images to tolerate; they are skipped.
    """

    source: Path
    to: Path
    tile: int = 0
    every: int = 1
    drawn: bool = True
    skip_corrupt: int = 0


def detect(request: DetectRequest) -> int:
    """Detect words and write `words.json`, ICDAR's text files, and images with outlines.

    Returns:
        The exit code, 0.

    Raises:
        UserError: The run is not a text detector's, there is nothing to read, the folder exists,
            or more images than allowed cannot be read.
    """
    console = Console()
    _check(request)
    source = open_source(request.source, every=request.every, notice=console.line)
    tally = FaultTally(request.skip_corrupt)
    entries: dict[str, list[dict[str, object]]] = {}
    trained = open_trained(request)
    with (
        closing(trained.policy),
        folder_beside(request.to, more="Nothing was left behind.") as folder,
        _drawing(request, folder, source) as draw,
        console.bar("images", source.count) as bar,
    ):
        for number, (name, path, pixels) in enumerate(source.frames, start=1):
            if isinstance(pixels, Fault):
                tally.add([pixels])
                continue
            words = words_of(trained, pixels, tile=request.tile)
            entries[name] = [
                {"points": word.corners.round(1).tolist(), "score": round(word.score, 4)}
                for word in words
            ]
            _write_lines(folder / "icdar" / path.parent / f"res_{path.name}.txt", words)
            draw(path, pixels, words)
            bar.show(number)
        if not entries:
            raise UserError("no image could be read", where=str(request.source))
        write_json(folder / "words.json", entries)
    print_unreadable(console, [str(fault) for fault in tally.faults])
    words = sum(map(len, entries.values()))
    console.line(f"{counted(words, 'word')} in {counted(len(entries), 'image')}: {request.to}")
    return 0


def words_of(trained: Trained, pixels: NDArray[np.uint8], *, tile: int = 0) -> list[Detection]:
    """Return the words in one image, in its pixel coordinates.

    Args:
        trained: A run of a text detector.
        pixels: RGB [height, width, 3].
        tile: See `DetectRequest`.
    """
    recipe = trained.recipe
    assert isinstance(recipe, DetectionRecipe)
    reader = recipe.reader(trained.model)
    data = recipe.data
    height, width = pixels.shape[:2]
    if not tile:
        return _words_in(trained, reader, pixels, input_size(height, width, data))
    # The network's input has the size of a tile; at a larger scale it covers less of the image.
    tiles = tiles_of(height, width, max(_MIN_TILE, int(tile / data.eval_scale)))
    parts = [
        pixels[part.top : part.top + part.height, part.left : part.left + part.width]
        for part in tiles
    ]
    sizes = [input_size(part.height, part.width, data, longest=tile) for part in tiles]
    words = [
        _words_in(trained, reader, part, size) for part, size in zip(parts, sizes, strict=True)
    ]
    words_of_tiles = list(zip(tiles, words, strict=True))
    return seamless(words_of_tiles, (height, width))


def _words_in(
    trained: Trained, reader: Reader, pixels: NDArray[np.uint8], size: tuple[int, int]
) -> list[Detection]:
    """Return the words that the network detects in an image resized to `size`."""
    height, width = pixels.shape[:2]
    image = torch.from_numpy(np.ascontiguousarray(resized(pixels, size)))
    batch = image.permute(2, 0, 1).unsqueeze(0).to(trained.device.torch)
    with torch.inference_mode(), trained.policy.forward():
        (words,) = reader(batch, [size])
    scale = np.array([size[1] / width, size[0] / height])
    return [replace(word, corners=word.corners / scale) for word in words]


def _write_lines(path: Path, words: Sequence[Detection]) -> None:
    """Write words in ICDAR's format."""
    lines = [",".join(map(str, word.corners.round().astype(int).ravel())) for word in words]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(f"{line}\n" for line in lines))


@contextmanager
def _drawing(
    request: DetectRequest, folder: Path, source: Source
) -> Generator[Callable[[PurePosixPath, NDArray[np.uint8], Sequence[Detection]], None]]:
    """Yield a function that writes images, or frames of a video, with outlines of their words."""

    def drawn(pixels: NDArray[np.uint8], words: Sequence[Detection]) -> NDArray[np.uint8]:
        return with_outlines(pixels, [(word.corners, FOUND) for word in words])

    if not request.drawn:
        yield lambda _path, _pixels, _words: None
    elif source.rate is not None:
        path = folder / "drawn" / f"{request.source.stem}.mp4"
        with VideoWriter(path, source.rate) as video:
            yield lambda _path, pixels, words: video.write(drawn(pixels, words))
    else:
        yield lambda relative_path, pixels, words: write_picture(
            drawn(pixels, words),
            folder / "drawn" / relative_path.with_name(f"{relative_path.name}.png"),
        )


def _check(request: DetectRequest) -> None:
    """Check the options before the network is loaded."""
    if request.every < 1:
        raise UserError(f"cannot be {request.every}", where="--every", todo="Allowed: 1 or more.")
    if request.tile and request.tile < _MIN_TILE:
        raise UserError(
            f"cannot be {request.tile}", where="--tile", todo=f"Allowed: 0, or {_MIN_TILE} or more."
        )
    if exists(request.to):
        raise already_exists(request.to, "Give another name.")
    name, _, recipe = stored_recipe(RunDirectory(request.run_dir), request.imports)
    if not isinstance(recipe, DetectionRecipe):
        raise UserError(
            f"the recipe '{name}' does not detect text",
            where=str(request.run_dir),
            todo="Give a run of a recipe such as psenet or east.",
        )
