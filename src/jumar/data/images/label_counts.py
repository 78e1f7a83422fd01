"""Counts the training images of each class, without decoding them."""

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.image_set import LabelledPictures
from jumar.data.images.listed import UNREADABLE, labels_of


def picture_counts(pictures: LabelledPictures) -> NDArray[np.int64]:
    """Return the number of readable images of each class, [classes].

    Folders and zips know their labels; the records of other sources are read once.
    """
    labels = labels_of(pictures.source, notice=lambda _: None)
    labels = labels[labels != UNREADABLE] + pictures.label_offset
    valid = labels[(labels >= 0) & (labels < pictures.num_classes)]
    return np.bincount(valid, minlength=pictures.num_classes)
