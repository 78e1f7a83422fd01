"""What is configured or passed on is frozen and named: nobody changes it or confuses its fields."""

import dataclasses
import inspect
from types import ModuleType
from typing import Any

import pytest

from jumar.data import samples
from jumar.data.checking import (
    findings,
    item,
    lookalikes,
    opening,
    outlines,
    pictures,
    scanning,
    sounds,
    texts,
)
from jumar.data.images import (
    cat_landmarks,
    class_folders,
    digits,
    image_folder,
    image_set,
    image_shards,
    image_zip,
    label_counts,
    listed,
    picture_set,
    picture_tree,
    sources,
    stored_images,
    tfrecord_writer,
)
from jumar.data.pixels import (
    color,
    crop_window,
    decode,
    deep_png,
    erasing,
    image_quality,
    mixing,
    picture_files,
    picture_grid,
    preprocessing,
    rand_augment,
    resize,
    video,
    whole_picture,
)
from jumar.data.pixels import outlines as drawn_outlines

SETTINGS_AND_RESULTS = (
    *(samples, findings, item, opening),
    *(class_folders, image_set, picture_set, sources, tfrecord_writer),
    *(erasing, mixing, preprocessing, rand_augment, resize, whole_picture),
)
MODULES = (
    *SETTINGS_AND_RESULTS,
    *(lookalikes, outlines, pictures, scanning, sounds, texts),
    *(cat_landmarks, digits, image_folder, image_shards, image_zip, label_counts, listed),
    *(picture_tree, stored_images),
    *(color, crop_window, decode, deep_png, image_quality, picture_files, picture_grid, video),
    drawn_outlines,
)


def functions_of(module: ModuleType) -> list[Any]:
    """The functions of a module and the methods of its classes."""
    own = [
        each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__
    ]
    methods = [each for kind in filter(inspect.isclass, own) for each in vars(kind).values()]
    return [each for each in (*own, *methods) if inspect.isfunction(each)]


def dataclasses_of(module: ModuleType) -> list[Any]:
    return [
        kind
        for _, kind in inspect.getmembers(module, dataclasses.is_dataclass)
        if kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_argument_may_be_named(module: ModuleType) -> None:
    made = inspect.getfile(module)
    for function in functions_of(module):
        if function.__code__.co_filename == made:  # dataclasses write methods of their own
            kinds = {each.kind for each in inspect.signature(function).parameters.values()}
            assert inspect.Parameter.POSITIONAL_ONLY not in kinds, function


@pytest.mark.parametrize("module", SETTINGS_AND_RESULTS, ids=lambda module: module.__name__)
def test_every_dataclass_is_frozen_and_its_fields_are_named(module: ModuleType) -> None:
    kinds = dataclasses_of(module)
    assert kinds
    for kind in kinds:
        assert kind.__dataclass_params__.frozen, kind
        # A class without fields of its own takes those of the one that it extends.
        assert all(field.kw_only for field in dataclasses.fields(kind)), kind


@pytest.mark.parametrize(
    "kind",
    [
        erasing.ErasingSettings,
        mixing.MixingSettings,
        mixing._SometimesMixed,
        rand_augment.AutoAugmentSettings,
    ],
    ids=lambda kind: kind.__name__,
)
def test_settings_of_no_kind_cannot_be_made(kind: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_an_item_takes_no_more_memory_than_its_fields() -> None:
    assert not hasattr(item.Item(where=""), "__dict__")
