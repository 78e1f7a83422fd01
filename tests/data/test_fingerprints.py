"""A set's fingerprint depends on which items it has, and not on where they are stored."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.data.denoising.denoise_sets import DenoisingData, open_patches
from jumar.data.denoising.frame_triplets import ClipData, open_triplets
from jumar.data.images.image_set import ImageData, open_image_sets
from jumar.data.images.image_shards import ImageShards
from jumar.data.images.picture_set import PictureData, open_generator_sets
from jumar.data.images.sources import open_source
from jumar.data.images.tfrecord_writer import write_tfrecords
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import fingerprint, fingerprint_of
from jumar.data.speech.keyword_data import KeywordData
from jumar.data.speech.keyword_set import open_keyword_sets
from tests.data.photographs import png
from tests.data.pictures import pets, write_files, write_zip
from tests.data.tones import tone_files

Sets = tuple[KeyedSet[Any], KeyedSet[Any] | None]


def _frames() -> dict[str, bytes]:
    pixels = np.zeros((16, 16, 3), np.uint8)
    return {f"{clip}/{number}.png": png(pixels + number) for clip in "ab" for number in range(5)}


def _parts(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{part}/{name}": data for part in ("train", "val") for name, data in files.items()}


OPENED: dict[str, tuple[Mapping[str, bytes], Callable[[str], Sets]]] = {
    "classes": (
        _parts(pets(3)),
        lambda path: open_image_sets(ImageData(path=path), num_classes=2, seed=1),
    ),
    "generation": (pets(3), lambda path: open_generator_sets(PictureData(path=path), seed=1)),
    "matched": (
        pets(3),
        lambda path: open_generator_sets(PictureData(path=path, match="cat/*"), seed=1),
    ),
    "patches": (
        _parts(_frames()),
        lambda path: open_patches(DenoisingData(path=path, patch_size=8), seed=1),
    ),
    "triplets": (
        _frames(),
        lambda path: open_triplets(ClipData(path=path, patch_size=8, holdout_frames=2), seed=1),
    ),
    "keywords": (
        _parts(tone_files(("low", "high", "other"), 3)),
        lambda path: open_keyword_sets(
            KeywordData(path=path, words=("low", "high"), background_frequency=0.0), seed=1
        ),
    ),
}


def _of(sets: Sets) -> tuple[str, str]:
    train, evaluation = sets
    return train.fingerprint, fingerprint_of(evaluation)


@pytest.mark.parametrize("kind", OPENED)
def test_moved_folder_and_its_zip_have_the_same_fingerprint(tmp_path: Path, kind: str) -> None:
    files, opened = OPENED[kind]
    before = _of(opened(str(write_files(tmp_path / "here", files))))
    assert all(before)
    moved = shutil.move(tmp_path / "here", tmp_path / "elsewhere")
    assert _of(opened(str(moved))) == before
    if kind != "keywords":
        assert _of(opened(str(write_zip(tmp_path / "packed.zip", files)))) == before


@pytest.mark.parametrize("change", ["add", "remove", "rename"])
@pytest.mark.parametrize("kind", OPENED)
def test_adding_removing_or_renaming_an_item_changes_the_fingerprint(
    tmp_path: Path, kind: str, change: str
) -> None:
    files, opened = OPENED[kind]
    place = write_files(tmp_path / "data", files)
    before, _ = _of(opened(str(place)))
    first = place / next(iter(files))
    new = first.with_stem(f"zz{first.stem}")
    if change == "add":
        shutil.copy(first, new)
    elif change == "remove":
        first.unlink()
    else:
        first.rename(new)
    assert _of(opened(str(place)))[0] != before


def test_shard_fingerprint_depends_on_records_not_location(tmp_path: Path) -> None:
    def written(name: str, count: int, shards: int) -> ImageShards:
        source = open_source(str(write_files(tmp_path / f"{name}-pets", pets(count))), "train")
        write_tfrecords(source, tmp_path / name, shards=shards, split_prefix="train")
        return ImageShards(sorted((tmp_path / name).glob("train-*")), lambda _: None)

    one, again, fewer = written("one", 4, 2), written("again", 4, 2), written("fewer", 3, 2)
    assert one.fingerprint == again.fingerprint != fewer.fingerprint


def test_fingerprint_depends_on_content_boundaries() -> None:
    assert fingerprint(b"ab", b"c") != fingerprint(b"a", b"bc")
    assert fingerprint(b"ab") == fingerprint(b"ab")
    assert fingerprint_of(object()) == ""
