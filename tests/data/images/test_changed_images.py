"""Image sets that are divided, balanced, changed or mixed, and those that are not."""

import dataclasses
import hashlib
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.images.image_set import ImageData, PlainImageData, open_image_sets
from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import train_batches
from jumar.data.pixels.erasing import RandomErasing
from jumar.data.pixels.mixing import MixupOrCutMix
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.data.pixels.rand_augment import RandAugment
from jumar.data.samples import Batch
from jumar.ground.errors import UserError
from jumar.recipes.registry import create_recipe
from jumar.settings import override
from tests.data.photographs import png, scene

DIGITS = ImageData(path="digits", image_size=8, preprocessing=plain_preprocessing())
EVERYTHING = dataclasses.replace(
    DIGITS,
    sampling="balanced",
    auto_augment=RandAugment(),
    erasing=RandomErasing(),
    mixing=MixupOrCutMix(),
)


def batches(
    data: PlainImageData,
    *,
    steps: range,
    batch: int = 8,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
) -> list[Batch]:
    train, _ = open_image_sets(data, num_classes=10, seed=5)
    stream = train_batches(
        train,
        seed=5,
        first_step=steps.start,
        last_step=steps.stop,
        batch_per_rank=batch,
        rank=rank,
        world=world,
        workers=workers,
        tally=FaultTally(),
    )
    return [dict(each) for each in stream]


def equal(one: Batch, other: Batch) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def folders(root: Path, counts: dict[str, int]) -> Path:
    for number, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True)
        for index in range(count):
            (root / name / f"{index}.png").write_bytes(png(scene(8, 8, seed=100 * number + index)))
    return root


def test_batches_are_bitwise_unchanged_if_all_options_are_off() -> None:
    flipped = dataclasses.replace(plain_preprocessing(), flip=True, brightness=3.0)
    data = dataclasses.replace(DIGITS, preprocessing=flipped)
    digest = hashlib.sha256()
    for each in batches(data, steps=range(95, 99), rank=1, world=2):
        for name in sorted(each):
            digest.update(name.encode())
            digest.update(each[name].contiguous().numpy().tobytes())
    # Recorded with the commit before division, balance, mixing, RandAugment and erasing.
    assert digest.hexdigest().startswith("c16a2b60a36b2fb3af782ec00707638f")


def test_with_all_options_on_batches_do_not_depend_on_resuming_ranks_or_workers() -> None:
    whole = batches(EVERYTHING, steps=range(186, 189))
    assert equal(batches(EVERYTHING, steps=range(187, 189), workers=2)[0], whole[1])
    for world in (2, 4):
        parts = [
            batches(EVERYTHING, steps=range(186, 189), batch=8 // world, rank=rank, world=world)
            for rank in range(world)
        ]
        for step in range(3):
            joined = {name: torch.cat([part[step][name] for part in parts]) for name in whole[step]}
            assert equal(joined, whole[step])


def test_augmented_images_differ_from_plain_ones_but_their_labels_do_not() -> None:
    plain = batches(DIGITS, steps=range(2))[0]
    changed = batches(
        dataclasses.replace(DIGITS, auto_augment=RandAugment(), erasing=RandomErasing()),
        steps=range(2),
    )[0]
    assert torch.equal(plain["label"], changed["label"])
    assert (plain["image"] != changed["image"]).any(dim=(1, 2, 3)).float().mean() > 0.5


def test_evaluation_is_never_changed_or_mixed() -> None:
    from jumar.data.samples import SampleKey

    keys = [SampleKey(0, index) for index in range(7)]
    plain, changed = (
        open_image_sets(data, num_classes=10, seed=5)[1] for data in (DIGITS, EVERYTHING)
    )
    assert plain is not None
    assert changed is not None
    assert equal(plain.fetch(keys).batch, changed.fetch(keys).batch)


def test_folder_and_its_zip_hold_out_the_same_images(tmp_path: Path) -> None:
    folder = folders(tmp_path / "pictures", {"a": 10, "b": 30})
    with zipfile.ZipFile(tmp_path / "pictures.zip", "w") as archive:
        for path in sorted(folder.rglob("*.png"), reverse=True):
            archive.write(path, f"top/{path.relative_to(folder)}")
    messages: list[str] = []
    data = dataclasses.replace(DIGITS, path=str(folder), val_fraction=0.2, split_seed=3)
    train, held_out = open_image_sets(data, num_classes=2, seed=1, notice=messages.append)
    zipped = dataclasses.replace(data, path=f"{folder}.zip")
    _, other = open_image_sets(zipped, num_classes=2, seed=1)
    assert held_out is not None
    assert other is not None
    assert (len(train), len(held_out)) == (32, 8)
    assert held_out.fingerprint == other.fingerprint
    assert train.fingerprint != held_out.fingerprint
    labels = Counter(held_out.kind.source.read(index).label for index in range(8))
    assert labels == {0: 2, 1: 6}
    assert any("8 of the 40 training samples" in line for line in messages)
    assert any(held_out.fingerprint in line for line in messages)


def test_folds_of_a_source_without_names_are_disjoint() -> None:
    seen: list[bytes] = []
    for fold in range(3):
        data = dataclasses.replace(DIGITS, folds=3, fold=fold)
        train, held_out = open_image_sets(data, num_classes=10, seed=1)
        assert held_out is not None
        assert len(train) + len(held_out) == 1501
        seen += [held_out.kind.source.read(index).encoded for index in range(len(held_out))]
    assert len(seen) == 1501


def test_balanced_sampling_takes_small_classes_as_often_as_large_ones(tmp_path: Path) -> None:
    folder = folders(tmp_path, {"a": 3, "b": 21})
    data = dataclasses.replace(DIGITS, path=str(folder), eval_path="none", sampling="balanced")
    labels = np.concatenate([each["label"] for each in batches(data, steps=range(3))])
    assert Counter(labels.tolist()) == {0: 12, 1: 12}
    shutil.rmtree(folder / "b")
    with pytest.raises(UserError, match="nothing to balance"):
        open_image_sets(data, num_classes=2, seed=1)


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        (("data.mixing=cutmix", "data.batch_size=7"), "7 is odd"),
        (("data.mixing=mixup", "training.micro_batch_size=3"), "3 is odd"),
        (("data.mixing=mixup", "data.mixing.alpha=0"), "alpha"),
        (("data.val_fraction=0.1", "data.eval_path=none"), "eval_path"),
        (("data.auto_augment=randaugmnt",), "Did you mean 'randaugment'"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_opened(
    assignments: tuple[str, ...], says: str
) -> None:
    with pytest.raises(UserError) as error:
        override(create_recipe("alexnet-demo"), assignments)
    assert says in f"{error.value.what} {error.value.todo}"


@pytest.mark.parametrize("recipe", ["vqvae", "biggan128", "bert-ner", "psenet"])
def test_recipes_that_cannot_divide_their_data_have_no_such_setting(recipe: str) -> None:
    with pytest.raises(UserError, match="unknown field"):
        override(create_recipe(recipe), ["data.val_fraction=0.1"])
