"""How many images each class has."""

from pathlib import Path

import numpy as np

from jumar.data.images.image_set import LabelledPictures
from jumar.data.images.label_counts import picture_counts
from jumar.data.images.sources import open_source
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.data.samples import ImageSource
from tests.data.pictures import pets, picture, write_files
from tests.data.scenes import MemorySource


def pictures(source: ImageSource, num_classes: int, label_offset: int = 0) -> LabelledPictures:
    return LabelledPictures(
        source=source,
        preprocessing=plain_preprocessing(),
        image_size=8,
        num_classes=num_classes,
        label_offset=label_offset,
        training=True,
    )


def test_labels_of_readable_records_are_counted_up_to_the_models_outputs() -> None:
    source = MemorySource([b"-", b"-", None, b"-", b"-", b"-", b"-"], [0, 1, 1, 3, 1, 4, 5])
    counts = picture_counts(pictures(source, 6))
    assert (counts.tolist(), counts.dtype) == ([1, 2, 0, 1, 1, 1], np.int64)
    assert picture_counts(pictures(source, 4)).tolist() == [1, 2, 0, 1]
    assert picture_counts(pictures(source, 4, -1)).tolist() == [2, 0, 1, 1]
    assert picture_counts(pictures(source, 7, 1)).tolist() == [0, 1, 2, 0, 1, 1, 1]


def test_folder_is_counted_without_being_read(tmp_path: Path) -> None:
    write_files(tmp_path, {**pets(2), "cat/more.jpg": picture()})
    source = open_source(str(tmp_path), "train")
    for path in tmp_path.rglob("*.jpg"):
        path.unlink()
    assert picture_counts(pictures(source, 3)).tolist() == [3, 2, 0]
