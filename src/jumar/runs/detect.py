"""Find the words in pictures with a trained text detector: `jumar detect`.

Pictures go through the network one at a time, as in evaluation. The result is a folder that is
there whole or not at all.
"""

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from numpy.typing import NDArray

from jumar.data.images.picture_tree import open_all_pictures
from jumar.data.loading.faults import FaultTally
from jumar.data.pixels.decode import DecodeError, EncodedImage
from jumar.data.pixels.outlines import with_outlines
from jumar.data.pixels.picture_files import write_picture
from jumar.data.polygons.augmentation import resized
from jumar.data.polygons.detection_set import input_size
from jumar.data.polygons.kernel_words import Detection
from jumar.data.samples import CorruptRecord, Record
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, write_text
from jumar.ground.paths import exists
from jumar.ground.text import counted
from jumar.recipes.stored import stored_recipe
from jumar.recipes.text_detection import DetectionRecipe
from jumar.recipes.trained import Trained
from jumar.runs.context import print_unreadable
from jumar.runs.denoise_work import already_exists, distinct_names
from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.tasks.text_detection import Reader
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, write_json

_GREEN = (0, 220, 0)


@dataclass(frozen=True, kw_only=True)
class DetectRequest(TrainedRequest):
    """The options of `jumar detect`, besides the weights.

    Attributes:
        source: A picture, or a folder or zip with pictures anywhere in it.
        to: A new folder.
        drawn: Also write the pictures with the outlines of their words.
        skip_corrupt: Unreadable pictures to tolerate; they are skipped.
    """

    source: Path
    to: Path
    drawn: bool = True
    skip_corrupt: int = 0


def detect(request: DetectRequest) -> int:
    """Write the words of all pictures: `words.json`, ICDAR's text files, and drawn pictures.

    Returns:
        The exit code, 0.

    Raises:
        UserError: The run is not a text detector's, there is nothing to read, the folder exists,
            or more pictures than allowed cannot be read.
    """
    console = Console()
    _check(request)
    pictures = open_all_pictures(request.source, notice=console.line)
    names = [pictures.path(index) for index in range(len(pictures))]
    places = distinct_names(names, [str(PurePosixPath(name).with_suffix(".png")) for name in names])
    tally = FaultTally(request.skip_corrupt)
    listed: dict[str, list[dict[str, object]]] = {}
    trained = open_trained(request)
    try:
        with (
            folder_beside(request.to, more="Nothing was left behind.") as folder,
            console.bar("pictures", len(names)) as bar,
        ):
            for index, (name, place) in enumerate(zip(names, places, strict=True)):
                try:
                    pixels = _decoded(pictures.read(index))
                except CorruptRecord as error:
                    tally.add([error.fault])
                    continue
                words = words_of(trained, pixels)
                listed[name] = [
                    {"points": word.corners.round(1).tolist(), "score": round(word.score, 4)}
                    for word in words
                ]
                _write(folder, PurePosixPath(place), pixels, words, drawn=request.drawn)
                bar.show(index + 1)
            write_json(folder / "words.json", listed)
    finally:
        trained.policy.close()
    print_unreadable(console, [str(fault) for fault in tally.faults])
    found = sum(map(len, listed.values()))
    console.line(f"{counted(found, 'word')} in {counted(len(listed), 'picture')}: {request.to}")
    return 0


def words_of(trained: Trained, pixels: NDArray[np.uint8]) -> list[Detection]:
    """The words of one picture, in its own pixels.

    Args:
        trained: A run of a text detector.
        pixels: RGB [height, width, 3].
    """
    recipe = trained.recipe
    assert isinstance(recipe, DetectionRecipe)
    reader: Reader = recipe.reader(trained.model)
    height, width = pixels.shape[:2]
    size = input_size(
        height, width, longest=recipe.data.eval_longest, up=recipe.data.eval_rounding == "up"
    )
    image = torch.from_numpy(np.ascontiguousarray(resized(pixels, size)))
    batch = image.permute(2, 0, 1).unsqueeze(0).to(trained.device.torch)
    with torch.inference_mode(), trained.policy.forward():
        (words,) = reader(batch, [size])
    scale = np.array([size[1] / width, size[0] / height])
    return [replace(word, corners=word.corners / scale) for word in words]


def _decoded(record: Record) -> NDArray[np.uint8]:
    try:
        return EncodedImage(record.encoded).decode(fast=False)
    except DecodeError as error:
        raise CorruptRecord(record.origin, error) from error


def _write(
    folder: Path,
    place: PurePosixPath,
    pixels: NDArray[np.uint8],
    words: list[Detection],
    *,
    drawn: bool,
) -> None:
    lines = [",".join(map(str, word.corners.round().astype(int).ravel())) for word in words]
    text = folder / "icdar" / place.parent / f"res_{place.stem}.txt"
    text.parent.mkdir(parents=True, exist_ok=True)
    write_text(text, "".join(f"{line}\n" for line in lines))
    if drawn:
        outlines = [(word.corners, _GREEN) for word in words]
        write_picture(with_outlines(pixels, outlines), folder / "drawn" / place)


def _check(request: DetectRequest) -> None:
    """Check whatever can be checked before the network is loaded."""
    if exists(request.to):
        raise already_exists(request.to, "Give another name.")
    name, _, recipe = stored_recipe(RunDirectory(request.run_dir), request.imports)
    if not isinstance(recipe, DetectionRecipe):
        raise UserError(
            f"the recipe '{name}' does not detect text",
            where=str(request.run_dir),
            todo="Give a run of a recipe such as psenet or east.",
        )
