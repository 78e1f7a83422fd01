from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from jumar.data.images.image_zip import ImageZip
from jumar.data.images.sources import open_source
from jumar.data.pixels.decode import decode_image
from jumar.data.pixels.rand_augment import OPERATIONS, NoAutoAugment, RandAugment
from jumar.settings import describe
from tests.data.photographs import scene

PAPER = [
    "identity",
    "auto_contrast",
    "equalize",
    "rotate",
    "solarize",
    "color",
    "posterize",
    "contrast",
    "brightness",
    "sharpness",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
]
STRENGTHS = (0.0, 0.3, -0.3, 1.0, -1.0)


@pytest.fixture(scope="module")
def photographs(shared: Path) -> list[Image.Image]:
    source = open_source(str(shared / "data" / "cats-dogs-128"), "train")
    assert isinstance(source, ImageZip)
    picked = range(0, len(source), len(source) // 5)
    return [Image.fromarray(decode_image(source.read(i).encoded, fast=False)) for i in picked]


def expected(name: str, image: Image.Image, strength: float) -> np.ndarray:
    """What the papers say, by Pillow where it has it, else pixel by pixel."""
    pixels = np.asarray(image)
    height, width = pixels.shape[:2]
    factor = 1 + 0.9 * strength
    if name == "auto_contrast":
        return np.asarray(ImageOps.autocontrast(image))
    if name == "equalize":
        return np.asarray(ImageOps.equalize(image))
    if name == "solarize":
        return np.where(pixels < 255 * (1 - abs(strength)), pixels, 255 - pixels)
    if name == "posterize":
        bits = 8 - round(4 * abs(strength))
        return pixels & (0xFF << (8 - bits) & 0xFF)
    if name in ("color", "contrast", "brightness", "sharpness"):
        kind = getattr(ImageEnhance, name.capitalize())
        return np.asarray(kind(image).enhance(factor))
    if name == "rotate":
        return np.asarray(image.rotate(30 * strength, fillcolor=(128,) * 3))
    rows, columns = np.mgrid[:height, :width]
    fx, fy = columns.astype(float), rows.astype(float)
    if name == "shear_x":
        fx = np.floor(columns + 0.5 + 0.3 * strength * (rows + 0.5))
    elif name == "shear_y":
        fy = np.floor(rows + 0.5 + 0.3 * strength * (columns + 0.5))
    elif name == "translate_x":
        fx = columns - int(strength * 150 / 331 * width)
    elif name == "translate_y":
        fy = rows - int(strength * 150 / 331 * height)
    inside = (fx >= 0) & (fx < width) & (fy >= 0) & (fy < height)
    result = np.full_like(pixels, 128)
    result[inside] = pixels[fy[inside].astype(int), fx[inside].astype(int)]
    return result


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("strength", STRENGTHS)
def test_each_operation_matches_the_paper_on_photographs(
    name: str, strength: float, photographs: list[Image.Image]
) -> None:
    for image in photographs:
        got = np.asarray(OPERATIONS[name](image, strength, 128))
        equal = (got == expected(name, image, strength)).all(axis=2).mean()
        # Pillow adds up rows in fixed point: a pixel on the border of two may be the other one.
        assert equal > (0.99 if name.startswith("shear") else 0.99999)


def test_there_are_the_14_operations_of_the_paper() -> None:
    assert list(OPERATIONS) == PAPER


def test_operations_are_equally_frequent_in_both_directions() -> None:
    drawn: Counter[tuple[str, bool]] = Counter()
    image = scene(8, 8)

    def noted(name: str):
        def operation(image: Image.Image, strength: float, fill: int) -> Image.Image:
            drawn[name, strength > 0] += 1
            return image

        return operation

    kept = dict(OPERATIONS)
    try:
        OPERATIONS.update({name: noted(name) for name in kept})  # pyright: ignore
        for seed in range(1400):
            RandAugment(operations=2, magnitude=9).changed(image, np.random.default_rng(seed))
    finally:
        OPERATIONS.update(kept)  # pyright: ignore
    assert len(drawn) == 28
    assert all(60 < count < 145 for count in drawn.values())


def test_equal_generators_give_equal_images_and_the_input_is_unchanged() -> None:
    pixels = scene(24, 32)
    before = pixels.copy()
    settings = RandAugment(operations=3, magnitude=15)
    one, other = (settings.changed(pixels, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one, other)
    assert np.array_equal(pixels, before)
    assert one.shape == pixels.shape
    assert one.dtype == np.uint8


def test_nothing_is_drawn_if_switched_off() -> None:
    random = np.random.default_rng(3)
    pixels = scene(8, 8)
    assert NoAutoAugment().changed(pixels, random) is pixels
    assert random.random() == np.random.default_rng(3).random()


def test_settings_have_their_defaults_and_bounds() -> None:
    rows = {row.path: (row.value, row.allowed) for row in describe(RandAugment())}
    assert rows == {
        "operations": (2, "0 to 14"),
        "magnitude": (9.0, "0 to 30"),
        "fill": (128, "0 to 255"),
    }


@pytest.mark.parametrize(("operations", "magnitude", "fill"), [(0, 9.0, 0), (3, 12.0, 7)])
def test_drawn_operations_are_applied_to_the_image(
    operations: int, magnitude: float, fill: int
) -> None:
    settings = RandAugment(operations=operations, magnitude=magnitude, fill=fill)
    pixels = scene(20, 30)
    for seed in range(12):
        random = np.random.default_rng(seed)
        image = Image.fromarray(pixels)
        for _ in range(operations):
            name = PAPER[int(random.integers(14))]
            sign = 1 if random.random() < 0.5 else -1
            image = OPERATIONS[name](image, sign * magnitude / 30, fill)
        assert np.array_equal(
            settings.changed(pixels, np.random.default_rng(seed)), np.asarray(image)
        )


@pytest.mark.parametrize("strength", [0.0, 0.3, -0.3, 0.5, 1.0, -1.0])
@pytest.mark.parametrize("name", [name for name in PAPER if not name.startswith("shear")])
def test_each_operation_matches_the_paper_on_a_synthetic_image(name: str, strength: float) -> None:
    image = Image.fromarray(scene(31, 45))
    got = np.asarray(OPERATIONS[name](image, strength, 128))
    assert np.array_equal(got, expected(name, image, strength))


def test_shears_shift_rows_and_columns_by_0_3_of_their_index() -> None:
    image = Image.fromarray(scene(100, 100))
    pixels = np.asarray(image)
    to_the_left = np.asarray(OPERATIONS["shear_x"](image, 1.0, 9))
    upwards = np.asarray(OPERATIONS["shear_y"](image, -0.5, 9))
    # Row 52 takes what lies 0.3 * 52.5 = 15.75 further right, column 52 what is 7.875 higher.
    assert np.array_equal(to_the_left[52, 20:60], pixels[52, 36:76])
    assert (to_the_left[52, 85:] == 9).all()
    assert np.array_equal(upwards[20:60, 52], pixels[12:52, 52])
    assert (upwards[:7, 52] == 9).all()
