import dataclasses
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from jumar.data.images.picture_set import FramedPictures, PictureData, open_generator_sets
from jumar.data.pixels.resize import resize, resize_fast
from jumar.data.samples import Record, SampleKey
from jumar.ground.errors import UserError
from jumar.settings import describe


def png(pixels: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def folder_of(tmp_path: Path, count: int = 3) -> Path:
    for number in range(count):
        place = tmp_path / "pictures" / ("cat" if number % 2 == 0 else "dog") / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(png(noise(20, 30, number)))
    return tmp_path / "pictures"


def test_by_default_the_whole_image_is_resized_as_the_original_does() -> None:
    pixels = noise(40, 24)
    record = Record(encoded=png(pixels), label=0, origin="x")
    made = PictureData().preprocessing().train_image(record, 16, np.random.default_rng(1))
    np.testing.assert_array_equal(made["image"], np.rint(resize(pixels, (16, 16))))


def test_square_crop_keeps_the_aspect_ratio() -> None:
    pixels = noise(40, 24)
    record = Record(encoded=png(pixels), label=0, origin="x")
    made = FramedPictures(frame="square", resize="legacy").eval_image(record, 24)
    np.testing.assert_array_equal(made["image"], pixels[8:32])


def test_values_are_between_minus_one_and_one() -> None:
    levels = torch.tensor([0, 255], dtype=torch.uint8).view(1, 1, 1, 2).expand(1, 3, 1, 2)
    made = PictureData().preprocessing().on_device({"image": levels}, training=True)
    assert made[0, 0, 0].tolist() == [-1.0, 1.0]


def test_half_of_the_training_images_are_mirrored_on_request_and_none_in_evaluation(
    tmp_path: Path,
) -> None:
    path = str(folder_of(tmp_path, 1))
    mirrored = 0
    for flip in (False, True):
        train, real = open_generator_sets(PictureData(path=path, image_size=16, flip=flip), seed=3)
        assert real is not None
        plain = real.fetch([SampleKey(0, 0)]).batch["image"]
        for epoch in range(20):
            result = train.fetch([SampleKey(epoch, 0)]).batch["image"]
            same = torch.equal(result, plain)
            assert same or (flip and torch.equal(result, plain.flip(3)))
            mirrored += not same
    assert 3 < mirrored < 17


def test_generated_images_are_compared_with_the_training_images_by_default(
    tmp_path: Path,
) -> None:
    path = str(folder_of(tmp_path))
    train, real = open_generator_sets(PictureData(path=path), seed=1)
    assert real is not None
    assert len(train) == len(real) == 3
    _, some = open_generator_sets(PictureData(path=path, eval_samples=2), seed=1)
    assert some is not None
    assert len(some) == 2
    assert open_generator_sets(PictureData(path=path, eval_path="none"), seed=1)[1] is None


def test_evaluation_numbers_the_images_and_skips_unreadable_ones(tmp_path: Path) -> None:
    path = folder_of(tmp_path, 5)
    (path / "dog" / "1.png").write_bytes(b"no image")
    _, real = open_generator_sets(PictureData(path=str(path), image_size=16), seed=1)
    assert real is not None
    result = real.fetch([SampleKey(0, index) for index in range(5)])
    assert result.batch["index"].tolist() == [0, 1, 2, 4]
    assert len(result.batch["image"]) == 4
    assert result.batch["image"].is_contiguous(memory_format=torch.channels_last)
    assert [fault.origin.endswith("1.png") for fault in result.faults] == [True]
    assert dict(real.fetch([SampleKey(0, 3)]).batch) == {}


def test_pattern_selects_images_in_folders_and_zips(tmp_path: Path) -> None:
    path = folder_of(tmp_path)
    packed = tmp_path / "pictures.zip"
    with zipfile.ZipFile(packed, "w") as file:
        for place in path.rglob("*.png"):
            file.write(place, place.relative_to(path))
    for where in (path, packed):
        train, _ = open_generator_sets(PictureData(path=str(where), match="*cat/*"), seed=1)
        assert len(train) == 2
        with pytest.raises(UserError, match="none of the 3 images matches"):
            open_generator_sets(PictureData(path=str(where), match="bird/*"), seed=1)


def test_settings_have_defaults_and_bounds_and_say_whether_a_resumed_run_may_change_them() -> None:
    rows = {row.path: (row.value, row.allowed) for row in describe(PictureData())}
    expected = {
        "path": ("digits", ""),
        "eval_path": ("", ""),
        "match": ("", ""),
        "eval_samples": (0, "0 or more"),
        "image_size": (128, "1 or more"),
        "frame": ("squeeze", "squeeze, square, head"),
        "resize": ("legacy", "legacy, antialias"),
        "flip": (False, ""),
        "inception_weights": ("", ""),
    }
    assert {name: rows[name] for name in expected} == expected
    fields = dataclasses.fields(PictureData)
    changeable = {field.name for field in fields if field.metadata["changeable"]}
    assert changeable & expected.keys() == {"eval_path"}
    chosen = PictureData(frame="head", resize="antialias", flip=True).preprocessing()
    assert (chosen.frame, chosen.resize, chosen.flip) == ("head", "antialias", True)
    assert (chosen.mean, chosen.std) == ((127.5,) * 3, (127.5,) * 3)


@pytest.mark.parametrize(
    ("shape", "square"),
    [
        ((24, 40), (slice(0, 24), slice(8, 32))),
        ((24, 41), (slice(0, 24), slice(8, 32))),
        ((33, 30), (slice(1, 31), slice(0, 30))),
    ],
)
@pytest.mark.parametrize("kind", ["legacy", "antialias"])
def test_square_is_central_in_landscape_and_portrait_images(
    shape: tuple[int, int], square: tuple[slice, slice], kind: str
) -> None:
    pixels = noise(*shape)
    record = Record(encoded=png(pixels), label=0, origin="x")
    made = FramedPictures(frame="square", resize=kind).eval_image(record, 17)["image"]
    cut = pixels[square]
    expected = resize_fast(cut, (17, 17)) if kind == "antialias" else resize(cut, (17, 17))
    np.testing.assert_array_equal(made, np.rint(expected))


@pytest.mark.parametrize(
    ("box", "head"),
    [
        ((0.25, 0.2, 0.75, 0.6), (slice(10, 30), slice(10, 30))),
        ((0.0, 0.5, 1.0, 1.0), (slice(0, 40), slice(25, 50))),
        ((0.5, 0.5, 0.5, 0.5), (slice(20, 21), slice(25, 26))),
    ],
)
def test_head_crop_has_at_least_one_pixel(
    box: tuple[float, float, float, float], head: tuple[slice, slice]
) -> None:
    pixels = noise(40, 50)
    record = Record(encoded=png(pixels), label=0, origin="x", boxes=(box,))
    made = FramedPictures(frame="head", resize="antialias").eval_image(record, 9)["image"]
    np.testing.assert_array_equal(made, resize_fast(pixels[head], (9, 9)))


def test_requested_number_of_first_images_is_compared(tmp_path: Path) -> None:
    path = str(folder_of(tmp_path))
    whole = open_generator_sets(PictureData(path=path), seed=1)[0].fingerprint
    for asked, count in ((0, 3), (1, 1), (2, 2), (3, 3), (4, 3)):
        train, real = open_generator_sets(PictureData(path=path, eval_samples=asked), seed=1)
        assert real is not None
        assert (len(train), len(real), train.fingerprint) == (3, count, whole)
        # All of them are the set itself, not a choice of it.
        assert (real.fingerprint == whole) == (count == 3)
        assert (train.training, real.training) == (True, False)
        assert set(train.fetch([SampleKey(0, 0)]).batch) == {"image", "label"}
    first = train.kind.source.read(0).origin
    assert real is not None
    assert real.kind.source.read(0).origin == first


def test_real_images_may_come_from_the_evaluation_part_of_another_path(
    tmp_path: Path,
) -> None:
    path = str(folder_of(tmp_path))
    for part, count in (("train", 4), ("val", 2)):
        for number in range(count):
            place = tmp_path / "other" / part / f"{number}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(png(noise(9, 9, number)))
    other = str(tmp_path / "other")
    train, real = open_generator_sets(PictureData(path=path, eval_path=other), seed=1)
    assert real is not None
    assert (len(train), len(real)) == (3, 2)
    train, real = open_generator_sets(PictureData(path=other, eval_path=path), seed=1)
    assert real is not None
    assert (len(train), len(real)) == (4, 3)


def test_pattern_without_a_match_names_the_first_path(tmp_path: Path) -> None:
    path = str(folder_of(tmp_path))
    with pytest.raises(UserError) as caught:
        open_generator_sets(PictureData(path=path, match="bird/*"), seed=1)
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "none of the 3 images matches 'bird/*'",
        "data.match",
        "The first one is cat/0.png.",
    )
