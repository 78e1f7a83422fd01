import dataclasses

import numpy as np
import pytest
import torch

from jumar.data.pixels import color
from jumar.data.pixels.crop_window import CropRule, Window, draw_window, scaled
from jumar.data.pixels.decode import DecodeError, EncodedImage, decode_image
from jumar.data.pixels.preprocessing import (
    ImagePreprocessing,
    alexnet_preprocessing,
    plain_preprocessing,
    resnext_preprocessing,
)
from jumar.data.pixels.resize import crop_and_resize, resize, resize_fast
from jumar.data.samples import Record
from jumar.ground.errors import UserError
from jumar.settings import checked, describe, from_json, override, to_json
from tests.data.scenes import encode, jpeg, scene

RECIPES = {
    "alexnet": alexnet_preprocessing(),
    "resnext": resnext_preprocessing(),
    "plain": plain_preprocessing(),
}


def record(encoded: bytes) -> Record:
    return Record(encoded=encoded, label=0, origin="test")


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", RECIPES)
def test_sample_is_bytes_of_the_requested_size_in_training_and_evaluation(name: str) -> None:
    sample = record(jpeg(90, 120))
    for arrays in (
        RECIPES[name].train_image(sample, 48, random()),
        RECIPES[name].eval_image(sample, 48),
    ):
        assert arrays["image"].shape == (48, 48, 3)
        assert arrays["image"].dtype == np.uint8


@pytest.mark.parametrize("name", RECIPES)
def test_same_randomness_gives_the_same_sample(name: str) -> None:
    sample = record(jpeg(90, 120))
    first = RECIPES[name].train_image(sample, 48, random(3))
    RECIPES[name].train_image(record(jpeg(50, 60, seed=4)), 48, random(8))
    again = RECIPES[name].train_image(sample, 48, random(3))
    for key in first:
        assert np.array_equal(first[key], again[key])


def test_result_is_unaffected_by_decoding_the_next_image() -> None:
    preprocessing = dataclasses.replace(plain_preprocessing(), eval_view="center")
    pixels = scene(48, 48)
    first = preprocessing.train_image(record(encode(pixels)), 48, random())["image"]
    copy = first.copy()
    preprocessing.train_image(record(jpeg(48, 48, seed=9)), 48, random())
    assert np.array_equal(first, copy)


def test_half_of_the_images_are_mirrored_and_none_without_flip() -> None:
    sample = record(encode(scene(32, 32), "PNG"))
    straight = plain_preprocessing()
    mirroring = dataclasses.replace(straight, flip=True)
    upright = straight.train_image(sample, 32, random())["image"]
    mirrored = 0
    for seed in range(200):
        assert np.array_equal(straight.train_image(sample, 32, random(seed))["image"], upright)
        image = mirroring.train_image(sample, 32, random(seed))["image"]
        mirrored += not np.array_equal(image, upright)
        assert np.array_equal(image, upright) or np.array_equal(image, upright[:, ::-1])
    assert 70 < mirrored < 130


def test_without_a_crop_the_whole_image_is_squeezed() -> None:
    pixels = scene(40, 70)
    image = plain_preprocessing().train_image(record(encode(pixels, "PNG")), 32, random())["image"]
    assert np.array_equal(image, resize_fast(pixels, (32, 32)))


def test_legacy_training_resizes_like_the_originals() -> None:
    pixels = scene(40, 70)
    legacy = dataclasses.replace(plain_preprocessing(), resize="legacy")
    image = legacy.train_image(record(encode(pixels, "PNG")), 32, random())["image"]
    assert np.array_equal(image, np.rint(resize(pixels, (32, 32))).astype(np.uint8))


@pytest.mark.parametrize("name", ["alexnet", "resnext"])
def test_decoding_to_a_smaller_size_shows_the_same_window(name: str) -> None:
    sample = record(encode(resize_fast(scene(80, 100), (800, 1000)), quality=90))
    whole = record(encode(decode_image(sample.encoded, fast=True), "PNG"))
    for seed in range(10):
        quick = RECIPES[name].train_image(sample, 40, random(seed))["image"]
        exact = RECIPES[name].train_image(whole, 40, random(seed))["image"]
        assert np.abs(quick.astype(int) - exact).mean() < 4


def test_window_contains_an_annotated_object() -> None:
    pixels = np.zeros((100, 100, 3), np.uint8)
    pixels[60:80, 20:40] = 255
    sample = Record(encoded=encode(pixels, "PNG"), label=0, origin="", boxes=[(0.6, 0.2, 0.8, 0.4)])
    strict = dataclasses.replace(
        alexnet_preprocessing(), crop_object_covered=0.9, crop_attempts=500
    )
    for seed in range(40):
        assert strict.train_image(sample, 40, random(seed))["image"].max() > 200


def test_colour_changes_are_drawn_on_the_host_within_their_ranges() -> None:
    sample = record(jpeg())
    drawn = [RECIPES["resnext"].train_image(sample, 16, random(seed)) for seed in range(300)]
    for name, low, high in (
        ("brightness", -0.4, 0.4),
        ("contrast", 0.4, 1.6),
        ("saturation", 0.4, 1.6),
    ):
        values = np.array([arrays[name] for arrays in drawn])
        assert values.dtype == np.float32
        assert low <= values.min() < low + 0.05
        assert high - 0.05 < values.max() <= high
    assert set(RECIPES["alexnet"].train_image(sample, 16, random())) == {"image"}
    assert set(RECIPES["resnext"].eval_image(sample, 16)) == {"image"}


def batch_of(count: int, size: int, *, channels_last: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    image = torch.randint(
        0, 256, (count, size, size + 3, 3), dtype=torch.uint8, generator=generator
    )
    image = image.permute(0, 3, 1, 2)
    return {"image": image if channels_last else image.contiguous()}


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_device_half_normalises_and_keeps_the_memory_format(
    channels_last: bool, dtype: torch.dtype
) -> None:
    preprocessing = RECIPES["alexnet"]
    batch = batch_of(3, 8, channels_last=channels_last)
    batch["image"] = batch["image"].to(dtype)
    before = batch["image"].clone()
    made = preprocessing.on_device(batch, training=True)
    mean = torch.tensor(preprocessing.mean)[:, None, None]
    std = torch.tensor(preprocessing.std)[:, None, None]
    assert made.dtype == torch.float32
    assert torch.allclose(made, (batch["image"].float() - mean) / std, atol=1e-6)
    assert made.stride() == batch["image"].stride()
    assert torch.equal(batch["image"], before)


def test_constants_created_in_evaluation_work_in_training_with_gradients() -> None:
    own = dataclasses.replace(alexnet_preprocessing(), mean=(1.5, 2.5, 3.5))
    batch = batch_of(1, 8, channels_last=True)
    with torch.inference_mode():
        own.on_device(batch, training=False)
    images = batch["image"].float().requires_grad_()
    own.on_device({"image": images}, training=True).sum().backward()
    assert images.grad is not None


@pytest.mark.parametrize("channels_last", [True, False])
def test_device_half_changes_colours_in_training_only(channels_last: bool) -> None:
    preprocessing = RECIPES["resnext"]
    batch = batch_of(3, 8, channels_last=channels_last)
    batch |= {
        "brightness": torch.tensor([-0.3, 0.0, 0.4]),
        "contrast": torch.tensor([0.6, 1.0, 1.4]),
        "saturation": torch.tensor([1.4, 1.0, 0.6]),
    }
    expected = color.adjust_brightness(batch["image"].float(), batch["brightness"])
    expected = color.adjust_contrast(expected, batch["contrast"])
    expected = color.adjust_saturation(expected, batch["saturation"]).clamp(0, 255)
    mean = torch.tensor(preprocessing.mean)[:, None, None]
    std = torch.tensor(preprocessing.std)[:, None, None]
    trained = preprocessing.on_device(batch, training=True)
    assert torch.allclose(trained, (expected - mean) / std, atol=1e-5)
    evaluated = preprocessing.on_device(batch, training=False)
    assert torch.allclose(evaluated, (batch["image"] - mean) / std, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "side"), [(224, 256), (100, 114), (64, 73)], ids=["224", "100", "64"]
)
def test_central_view_is_cut_from_the_squeezed_image(size: int, side: int) -> None:
    pixels = scene(90, 130)
    view = alexnet_preprocessing().eval_levels(record(encode(pixels, "PNG")), size)
    start = (side - size) // 2
    whole = resize(pixels, (side, side))
    assert np.array_equal(view, whole[start : start + size, start : start + size])


@pytest.mark.parametrize("name", RECIPES)
def test_settings_survive_json_and_the_command_line(name: str) -> None:
    default = RECIPES[name]
    assert from_json(ImagePreprocessing(), to_json(default), where="test") == default
    assert override(default, ["contrast=0.5,1.0"]).contrast == (0.5, 1.0)
    assert checked(default) is default


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        ("crop_area=0.5", "crop_area"),
        ("crop_aspect=2,1", "crop_aspect"),
        ("contrast=1,2,3", "contrast"),
        ("mean=1,2", "mean"),
        ("std=0,1,1", "std"),
        ("crop=centre", "crop"),
    ],
)
def test_invalid_settings_are_refused_by_name(assignment: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        override(alexnet_preprocessing(), [assignment])


@pytest.mark.parametrize("name", RECIPES)
def test_damaged_image_is_a_decode_error(name: str) -> None:
    damaged = record(jpeg()[:-300])
    with pytest.raises(DecodeError):
        RECIPES[name].train_image(damaged, 16, random())
    with pytest.raises(DecodeError):
        RECIPES[name].eval_image(damaged, 16)


def test_settings_have_their_defaults_and_bounds() -> None:
    rows = {row.path: (row.value, row.allowed) for row in describe(ImagePreprocessing())}
    assert rows == {
        "crop": ("picture", "picture, frame, none"),
        "crop_area": ((0.08, 1.0), "0 to 1"),
        "crop_aspect": ((0.75, 1.333), "0.01 or more"),
        "crop_attempts": (10, "1 or more"),
        "crop_object_covered": (0.1, "0 to 1"),
        "crop_frame": (280, "1 or more"),
        "resize": ("antialias", "antialias, legacy"),
        "flip": (True, ""),
        "brightness": (0.0, "0 or more"),
        "contrast": ((1.0, 1.0), "0 or more"),
        "saturation": ((1.0, 1.0), "0 or more"),
        "eval_view": ("center", "center, box, whole"),
        "eval_fraction": (0.875, "0.01 to 1"),
        "mean": ((123.675, 116.28, 103.53), ""),
        "std": ((58.395, 57.12, 57.375), "1e-06 or more"),
    }
    assert alexnet_preprocessing() == ImagePreprocessing()


def test_recipes_have_their_originals_numbers() -> None:
    def changed(preprocessing: ImagePreprocessing) -> dict[str, object]:
        default = ImagePreprocessing()
        return {
            field.name: getattr(preprocessing, field.name)
            for field in dataclasses.fields(preprocessing)
            if getattr(preprocessing, field.name) != getattr(default, field.name)
        }

    assert changed(resnext_preprocessing()) == {
        "crop": "frame",
        "crop_aspect": (3 / 4, 4 / 3),
        "crop_attempts": 100,
        "crop_object_covered": 0.0,
        "brightness": 0.4,
        "contrast": (0.4, 1.6),
        "saturation": (0.4, 1.6),
        "eval_view": "box",
        "eval_fraction": 0.8,
        "mean": (121.0, 115.0, 100.0),
        "std": (70.0, 68.0, 71.0),
    }
    assert changed(plain_preprocessing()) == {
        "crop": "none",
        "flip": False,
        "eval_view": "whole",
        "eval_fraction": 1.0,
        "mean": (127.5,) * 3,
        "std": (127.5,) * 3,
    }


@pytest.mark.parametrize("name", ["crop_area", "crop_aspect", "contrast", "saturation"])
def test_range_has_two_values_that_may_be_equal(name: str) -> None:
    checked(ImagePreprocessing(**{name: (0.5, 0.5)}))
    for values in ((0.5,), (0.1, 0.2, 0.3), (0.6, 0.5)):
        with pytest.raises(UserError) as caught:
            checked(ImagePreprocessing(**{name: values}))
        assert (caught.value.what, caught.value.todo) == (
            f"'{name}' takes the smallest and the largest value, not {values}",
            f"For instance: {name}=0.5,1.5",
        )


@pytest.mark.parametrize("name", ["mean", "std"])
def test_normalisation_needs_three_constants(name: str) -> None:
    for values in ((1.0, 2.0), (1.0, 2.0, 3.0, 4.0)):
        with pytest.raises(UserError) as caught:
            checked(ImagePreprocessing(**{name: values}))
        assert caught.value.what == (
            f"'{name}' needs three numbers (red, green, blue), not {values}"
        )


@pytest.mark.parametrize("crop", ["picture", "frame", "none"])
@pytest.mark.parametrize("kind", ["antialias", "legacy"])
def test_training_sample_draws_window_mirror_and_changes_in_this_order(
    crop: str, kind: str
) -> None:
    pixels = scene(70, 90)
    box = (0.2, 0.1, 0.9, 0.8)
    sample = Record(encoded=encode(pixels, "PNG"), label=0, origin="", boxes=[box])
    preprocessing = ImagePreprocessing(
        crop=crop,
        resize=kind,
        crop_area=(0.1, 0.6),
        crop_aspect=(0.5, 1.5),
        crop_attempts=20,
        crop_object_covered=0.3,
        crop_frame=50,
        brightness=9.0,
        contrast=(0.5, 0.9),
        saturation=(1.1, 2.0),
    )
    rule = CropRule(area=(0.1, 0.6), aspect=(0.5, 1.5), attempts=20, object_covered=0.3)
    for seed in range(10):
        draw = random(seed)
        window = Window(0, 0, 70, 90)
        if crop == "picture":
            window = draw_window(70, 90, rule, draw, objects=[box])
        elif crop == "frame":
            window = scaled(draw_window(50, 50, rule, draw), 50, 70, 90)
        top, left, rows, columns = window
        cut = pixels[top : top + rows, left : left + columns]
        image = resize_fast(cut, (24, 24)) if kind == "antialias" else resize(cut, (24, 24))
        image = np.rint(image)[:, ::-1] if draw.random() < 0.5 else np.rint(image)
        made = preprocessing.train_image(sample, 24, random(seed))
        assert np.array_equal(made.pop("image"), image)
        expected = [-9 + 18 * draw.random(), 0.5 + 0.4 * draw.random(), 1.1 + 0.9 * draw.random()]
        assert list(made) == ["brightness", "contrast", "saturation"]
        assert [float(value) for value in made.values()] == pytest.approx(expected)


@pytest.mark.parametrize(("crop", "size"), [("none", 150), ("none", 100), ("picture", 60)])
def test_jpeg_is_decoded_no_larger_than_its_window_needs(crop: str, size: int) -> None:
    encoded = jpeg(800, 1000)
    preprocessing = ImagePreprocessing(crop=crop, flip=False, crop_area=(0.2, 0.9))
    rule = CropRule(area=(0.2, 0.9), aspect=(0.75, 1.333), attempts=10, object_covered=0.1)
    shrunk = set()
    for seed in range(8):
        window = Window(0, 0, 800, 1000)
        if crop == "picture":
            window = draw_window(800, 1000, rule, random(seed))
        top, left, rows, columns = window
        # libjpeg decodes to a half, a quarter or an eighth; the window keeps `size` pixels.
        by = next(by for by in (8, 4, 2, 1) if rows / by >= size and columns / by >= size)
        shrunk.add(by)
        height, width = 800 // by, 1000 // by
        pixels = EncodedImage(encoded).decode(fast=True, at_least=(height, width))
        assert pixels.shape[:2] == (height, width)
        cut = pixels[
            round(top / by) : round((top + rows) / by),
            round(left / by) : round((left + columns) / by),
        ]
        made = preprocessing.train_image(record(encoded), size, random(seed))["image"]
        assert np.array_equal(made, resize_fast(cut, (size, size)))
    assert shrunk == {("none", 150): {4}, ("none", 100): {8}, ("picture", 60): {4, 8}}[crop, size]


def test_window_that_shrinks_to_zero_keeps_a_pixel() -> None:
    encoded = jpeg(800, 1000)
    tiny = ImagePreprocessing(flip=False, crop_area=(0.0001, 0.0001), crop_object_covered=0.0)
    for seed in range(5):
        assert tiny.train_image(record(encoded), 1, random(seed))["image"].shape == (1, 1, 3)


@pytest.mark.parametrize(("view", "fraction"), [("whole", 1.0), ("box", 0.6), ("center", 0.5)])
def test_evaluation_sample_is_the_view_rounded(view: str, fraction: float) -> None:
    pixels = scene(70, 90)
    preprocessing = ImagePreprocessing(eval_view=view, eval_fraction=fraction)
    sample = record(encode(pixels, "PNG"))
    expected = {
        "whole": lambda: resize_fast(pixels, (24, 24)),
        "box": lambda: crop_and_resize(pixels, (0.2, 0.2, 0.8, 0.8), (24, 24)),
        "center": lambda: resize(pixels, (48, 48))[12:36, 12:36],
    }[view]()
    levels = preprocessing.eval_levels(sample, 24)
    assert levels.dtype == np.float32
    assert np.allclose(levels, expected, atol=1e-3)
    made = preprocessing.eval_image(sample, 24)
    assert np.array_equal(made["image"], np.rint(levels))


@pytest.mark.parametrize("count", [1, 4, 9])
def test_colours_are_changed_in_batches_of_any_size(count: int) -> None:
    preprocessing = RECIPES["resnext"]
    batch = batch_of(count, 6, channels_last=True) | {
        "contrast": torch.linspace(0.4, 1.6, count),
        "saturation": torch.linspace(1.6, 0.4, count),
    }
    together = preprocessing.on_device(batch, training=True)
    for row in range(count):
        alone = preprocessing.on_device(
            {name: value[row : row + 1] for name, value in batch.items()}, training=True
        )
        assert torch.allclose(together[row : row + 1], alone, atol=1e-6)
    mean, std = (torch.tensor(each)[:, None, None] for each in ((121, 115, 100), (70, 68, 71)))
    levels = together * std + mean
    assert levels.min() >= -1e-3
    assert levels.max() <= 255 + 1e-3
