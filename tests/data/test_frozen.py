"""What is configured or passed on is frozen and named: nobody changes it or confuses its fields."""

import dataclasses
import inspect
from types import ModuleType
from typing import Any

import pytest

from jumar.data import samples
from jumar.data.checking import findings, item, opening
from jumar.data.images import class_folders, image_set, picture_set, sources, tfrecord_writer
from jumar.data.pixels import (
    erasing,
    mixing,
    preprocessing,
    rand_augment,
    resize,
    whole_picture,
)

MODULES = (
    *(samples, findings, item, opening),
    *(class_folders, image_set, picture_set, sources, tfrecord_writer),
    *(erasing, mixing, preprocessing, rand_augment, resize, whole_picture),
)


def dataclasses_of(module: ModuleType) -> list[Any]:
    return [
        kind
        for _, kind in inspect.getmembers(module, dataclasses.is_dataclass)
        if kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_dataclass_is_frozen_and_its_fields_are_named(module: ModuleType) -> None:
    kinds = dataclasses_of(module)
    assert kinds
    for kind in kinds:
        assert kind.__dataclass_params__.frozen, kind
        # A class without fields of its own takes those of the one that it extends.
        assert all(field.kw_only for field in dataclasses.fields(kind)), kind


@pytest.mark.parametrize(
    "kind",
    [erasing.ErasingSettings, mixing.MixingSettings, rand_augment.AutoAugmentSettings],
    ids=lambda kind: kind.__name__,
)
def test_settings_of_no_kind_cannot_be_made(kind: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_an_item_takes_no_more_memory_than_its_fields() -> None:
    assert not hasattr(item.Item(where=""), "__dict__")
