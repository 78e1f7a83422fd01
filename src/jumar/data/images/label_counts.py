"""How many training images each class has, before anything is decoded."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.image_set import LabelledPictures
from jumar.data.samples import CorruptRecord, ImageSource


@runtime_checkable
class _KnowsLabels(Protocol):
    @property
    def labels(self) -> NDArray[np.int32]:
        """The stored label of each image."""
        ...


def picture_counts(pictures: LabelledPictures) -> NDArray[np.int64]:
    """The number of images of each class, [classes].

    Folders and zips know their labels; the records of other sources are read once.
    """
    labels = _stored_labels(pictures.source) + pictures.label_offset
    valid = labels[(labels >= 0) & (labels < pictures.num_classes)]
    return np.bincount(valid, minlength=pictures.num_classes)


def _stored_labels(source: ImageSource) -> NDArray[np.int64]:
    if isinstance(source, _KnowsLabels):
        return source.labels.astype(np.int64)
    labels: list[int] = []
    for index in range(len(source)):
        try:
            labels.append(source.read(index).label)
        except CorruptRecord:
            continue  # reported when training meets it
    return np.array(labels, dtype=np.int64)
