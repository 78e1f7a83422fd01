"""Writes a data set of rendered words, for trying a detector without downloads.

Each image is a photograph or a texture with words in fonts of the machine, in perspective, in any
contrasting colour, slightly blurred. The outline of a word is exact: the rectangle around its ink
is transformed like the ink. Some words are too small to read and are labelled `###`.

The same options, fonts and photographs lead to the same bytes for any number of processes, with the
same versions of Pillow and NumPy.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter, ImageFont

from jumar.data.images.picture_tree import Pictures, open_all_pictures
from jumar.data.pixels.decode import DecodeError, decode_image
from jumar.data.polygons.fonts import fonts_with
from jumar.data.polygons.regions import DONT_CARE, Region, mended
from jumar.data.polygons.vocabulary import CHINESE, LATIN, drawn_word
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside
from jumar.ground.paths import exists
from jumar.ground.processes import begin_worker, process_context

Script = Literal["latin", "chinese", "both"]
Pixels = NDArray[np.uint8]

MIN_SIDE = 8.0
"""Words with a shorter side, in pixels, are labelled `###`."""

_DRAW = 11
"""First entropy word, which is unique to this use of a seed."""
_TINY_SHARE = 0.08
_MIN_CONTRAST = 70.0
_ATTEMPTS = 12


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Options of the images to write.

    Attributes:
        script: `latin`, `chinese`, or words of `both`.
        width: Width of each image, in pixels.
        height: Height of each image.
        words: Minimum and maximum number of words to place; there are fewer if space is short.
        text_height: Minimum and maximum font size, in pixels.
        rotation: Maximum angle of a word, in degrees.
        fonts: Font files or folders; those of the machine if empty. If there are at least four
            fonts, every fourth by name is reserved for the part `test`, as every fourth word always
            is.
        photographs: A folder or zip of images to write on; textures if None.
        seed: Random seed.
    """

    script: Script = "latin"
    width: int = 640
    height: int = 480
    words: tuple[int, int] = (4, 24)
    text_height: tuple[int, int] = (14, 60)
    rotation: float = 25.0
    fonts: tuple[Path, ...] = ()
    photographs: Path | None = None
    seed: int = 0


class WrittenPicture(NamedTuple):
    """An image with its words."""

    pixels: Pixels
    regions: Sequence[Region]


class Written(NamedTuple):
    """Numbers of images, words and ignored words in a written data set."""

    pictures: int
    words: int
    ignored: int


@dataclass(frozen=True, kw_only=True)
class Materials:
    """Options, fonts and photographs from which a process writes images."""

    writing: Writing
    latin: Sequence[Path]
    chinese: Sequence[Path]
    photographs: Pictures | None
    test: bool


def write_text_pictures(
    folder: Path,
    writing: Writing,
    *,
    train: int,
    test: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Written:
    """Write a data set in ICDAR 2015's format: `train/img_1.jpg` with `train/gt_img_1.txt`, and
    `test`.

    Args:
        folder: A folder that does not exist or is empty.
        writing: The images to write.
        train: Number of training images.
        test: Number of test images, with their own fonts if there are enough.
        workers: Number of processes.
        progress: Called with the number of images written and the total.

    Raises:
        UserError: The folder is not empty, no font has the characters, or no photograph
            can be read.
    """
    if exists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError("is not empty", where=str(folder), todo="Specify a new folder.")
    materials_of = {part: open_materials(writing, part) for part in ("train", "test")}
    jobs = [("train", number) for number in range(train)] + [("test", n) for n in range(test)]
    totals = np.zeros(3, np.int64)
    with folder_beside(folder) as temporary:
        for part in {part for part, _ in jobs}:
            (temporary / part).mkdir()
        write = partial(_write_one, temporary, materials_of)
        for done, counts in enumerate(_in_order(write, jobs, workers), start=1):
            totals += counts
            progress(done, len(jobs))
    return Written(*totals.tolist())


def written_picture(materials: Materials, number: int) -> WrittenPicture:
    """Render one image, deterministically."""
    random = np.random.default_rng((_DRAW, materials.writing.seed, int(materials.test), number))
    pixels = _background(materials, random)
    is_occupied = np.zeros(pixels.shape[:2], bool)
    low, high = materials.writing.words
    regions: list[Region] = []
    for _ in range(int(random.integers(low, high + 1))):
        if (region := _write_word(pixels, is_occupied, materials, random)) is not None:
            regions.append(region)
    return WrittenPicture(pixels, regions)


def open_materials(writing: Writing, part: str = "train") -> Materials:
    """Find the fonts and photographs for a part; raises like `write_text_pictures`."""

    def fonts_of(script: Script, characters: str) -> Sequence[Path]:
        if writing.script not in (script, "both"):
            return ()
        fonts = fonts_with(characters, writing.fonts)
        if len(fonts) < 4:
            return fonts
        return [font for index, font in enumerate(fonts) if (index % 4 == 3) == (part == "test")]

    photographs = None if writing.photographs is None else open_all_pictures(writing.photographs)
    return Materials(
        writing=writing,
        latin=fonts_of("latin", LATIN),
        chinese=fonts_of("chinese", CHINESE),
        photographs=photographs,
        test=part == "test",
    )


def _in_order(
    write: Callable[[tuple[str, int]], NDArray[np.int64]],
    jobs: Sequence[tuple[str, int]],
    workers: int,
) -> Iterator[NDArray[np.int64]]:
    if workers <= 1:
        yield from map(write, jobs)
        return
    with ProcessPoolExecutor(workers, process_context(), begin_worker) as pool:
        yield from pool.map(write, jobs, chunksize=4)


def _write_one(
    folder: Path, materials_of: dict[str, Materials], job: tuple[str, int]
) -> NDArray[np.int64]:
    part, number = job
    picture = written_picture(materials_of[part], number)
    quality = 70 + number * 7 % 26
    encoded = io.BytesIO()
    Image.fromarray(picture.pixels).save(encoded, "JPEG", quality=quality)
    (folder / part / f"img_{number + 1}.jpg").write_bytes(encoded.getvalue())
    lines = [_line(region) for region in picture.regions]
    (folder / part / f"gt_img_{number + 1}.txt").write_text("".join(lines), encoding="utf-8")
    return np.array([1, len(lines), sum(region.ignored for region in picture.regions)])


def _line(region: Region) -> str:
    numbers = ",".join(f"{value:.1f}".removesuffix(".0") for value in region.corners.reshape(-1))
    return f"{numbers},{region.text}\n"


def _write_word(
    pixels: Pixels,
    is_occupied: NDArray[np.bool_],
    materials: Materials,
    random: np.random.Generator,
) -> Region | None:
    """Draw a word where there is space; return None if there is none."""
    chinese = bool(materials.chinese) and (not materials.latin or random.random() < 0.5)
    word = drawn_word(chinese, random, test=materials.test)
    fonts = materials.chinese if chinese else materials.latin
    low, high = materials.writing.text_height
    size = float(np.exp(random.uniform(np.log(low), np.log(high))))
    if random.random() < _TINY_SHARE:
        size = float(random.uniform(5, 8))
    # Drawn large and shrunk by the perspective, so that small words are also smooth.
    font = ImageFont.truetype(str(fonts[int(random.integers(len(fonts)))]), 64)
    ink = _ink(font, word)
    height, width = ink.shape
    shape = (size * width / height, size)
    for _ in range(_ATTEMPTS):
        corners = _corners(shape, pixels.shape[:2], materials.writing.rotation, random)
        left, top = np.floor(corners.min(axis=0)).astype(int) - 2
        right, bottom = np.ceil(corners.max(axis=0)).astype(int) + 2
        is_inside = (
            left >= 0 and top >= 0 and right <= pixels.shape[1] and bottom <= pixels.shape[0]
        )
        if not is_inside or is_occupied[top:bottom, left:right].any():
            continue
        is_occupied[top:bottom, left:right] = True
        cover = _in_perspective(ink, corners - (left, top), (right - left, bottom - top))
        if random.random() < 0.5:
            blurred = Image.fromarray(cover).filter(
                ImageFilter.GaussianBlur(float(random.uniform(0.2, 0.05 * size**0.5 + 0.3)))
            )
            cover = np.asarray(blurred)
        part = pixels[top:bottom, left:right]
        colour = _contrasting(part, random)
        alpha = cover[..., None].astype(np.float32) / 255 * random.uniform(0.85, 1)
        part[:] = np.rint(part * (1 - alpha) + colour * alpha).astype(np.uint8)
        outline, _ = mended(np.round(corners, 1), pixels.shape[:2])
        sides = np.hypot(*(np.roll(outline, -1, axis=0) - outline).T)
        ignored = bool(sides.min() < MIN_SIDE)
        return Region(corners=outline, text=DONT_CARE if ignored else word, ignored=ignored)
    return None


def _ink(font: ImageFont.FreeTypeFont, word: str) -> Pixels:
    """Return a word's ink, 0 to 255, without margins."""
    left, top, right, bottom = font.getbbox(word)
    canvas = Image.new("L", (int(right - left) + 8, int(bottom - top) + 8))
    mask = font.getmask(word, mode="L")
    canvas.im.paste(255, (4, 4, 4 + mask.size[0], 4 + mask.size[1]), mask)
    return np.asarray(canvas.crop(canvas.getbbox()))


def _corners(
    shape: tuple[float, float],
    size: tuple[int, ...],
    rotation: float,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Draw a quadrilateral, roughly of the size of a word's rectangle, somewhere in the image."""
    width, height = shape
    corners = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2
    corners += random.uniform(-0.12, 0.12, (4, 2)) * height
    corners[:, 0] += random.uniform(-0.3, 0.3) * corners[:, 1]
    angle = np.radians(np.clip(random.normal(0, rotation / 2), -rotation, rotation))
    rotation_matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return corners @ rotation_matrix + random.random(2) * (size[1], size[0])


def _in_perspective(ink: Pixels, corners: NDArray[np.float64], size: tuple[int, int]) -> Pixels:
    """Warp ink [height, width] such that its corners map to `corners`, in an image of `size`."""
    height, width = ink.shape
    ink_corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    # When shrinking, averaged first, since the warp samples single pixels.
    shrink = max(1, int(height / max(np.ptp(corners[:, 1]), 1)))
    image = Image.fromarray(ink)
    if shrink > 1:
        image = image.reduce(shrink)
        ink_corners = ink_corners / (width, height) * image.size
    equations = np.zeros((4, 2, 8))
    equations[:, 0, :3] = equations[:, 1, 3:6] = np.pad(
        corners, [(0, 0), (0, 1)], constant_values=1
    )
    equations[:, :, 6:] = -ink_corners[:, :, None] * corners[:, None]
    coefficients = np.linalg.solve(equations.reshape(8, 8), ink_corners.reshape(-1))
    warped = image.transform(
        (int(size[0]), int(size[1])),
        Image.Transform.PERSPECTIVE,
        coefficients.tolist(),
        Image.Resampling.BICUBIC,
    )
    return np.asarray(warped)


def _contrasting(part: Pixels, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw a colour whose luma differs enough from that of the pixels below it."""
    luma = np.array([0.299, 0.587, 0.114])
    below = float(part.reshape(-1, 3).mean(axis=0) @ luma)
    colour = random.uniform(0, 255, 3)
    for _ in range(_ATTEMPTS):
        if abs(float(colour @ luma) - below) >= _MIN_CONTRAST:
            return colour
        colour = random.uniform(0, 255, 3)
    return np.full(3, 0.0 if below > 127 else 255.0)


def _background(materials: Materials, random: np.random.Generator) -> Pixels:
    height, width = materials.writing.height, materials.writing.width
    photographs = materials.photographs
    if photographs is None:
        return _texture(height, width, random)
    start = int(random.integers(len(photographs)))
    reasons: list[str] = []
    for index in chain(range(start, len(photographs)), range(start)):
        try:
            pixels = decode_image(photographs.read(index).encoded, fast=False)
        except (CorruptRecord, DecodeError) as error:
            reasons.append(str(error))
            continue
        return _part_of(pixels, height, width, random)
    raise UserError(f"no photograph can be read: {reasons[0]}")


def _part_of(pixels: Pixels, height: int, width: int, random: np.random.Generator) -> Pixels:
    """Cut and resize a part of a photograph, at least half as large as the largest that fits."""
    rows, columns = pixels.shape[:2]
    scale = min(rows / height, columns / width) * random.uniform(0.5, 1)
    box_height, box_width = max(1, round(height * scale)), max(1, round(width * scale))
    top = int(random.integers(rows - box_height + 1))
    left = int(random.integers(columns - box_width + 1))
    box = (left, top, left + box_width, top + box_height)
    resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR, box)
    return np.array(resized)


def _texture(height: int, width: int, random: np.random.Generator) -> Pixels:
    """Return a texture of coarse and fine noise around a colour, with some plain rectangles."""
    base = random.uniform(20, 235, 3)
    picture = np.broadcast_to(base, (height, width, 3)).astype(np.float32)
    for cells, strength in ((3, 50.0), (12, 25.0), (60, 12.0)):
        coarse = random.normal(0, 1, (cells, cells, 3)).astype(np.float32)
        smooth = [
            np.asarray(Image.fromarray(plane).resize((width, height), Image.Resampling.BICUBIC))
            for plane in coarse.transpose(2, 0, 1)
        ]
        picture = picture + strength * random.uniform(0, 1) * np.stack(smooth, axis=2)
    for _ in range(int(random.integers(0, 6))):
        top, left = int(random.integers(height)), int(random.integers(width))
        rows, columns = random.uniform(0.05, 0.4, 2) * (height, width)
        picture[top : top + int(rows), left : left + int(columns)] = random.uniform(0, 255, 3)
    picture = picture + random.normal(0, random.uniform(0, 6), picture.shape)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)
