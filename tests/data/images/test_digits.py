"""The digits that come with scikit-learn."""

import io
import pickle
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from jumar.data.images.digits import open_digits
from jumar.data.samples import fingerprint


def test_every_digit_is_in_exactly_one_part_and_a_sixth_of_each_class_is_for_evaluation() -> None:
    train, evaluation = open_digits("train"), open_digits("eval")
    origins = [
        source.read(index).origin for source in (train, evaluation) for index in range(len(source))
    ]
    assert len(set(origins)) == len(origins) == 1797
    for digit in range(10):
        counts = [
            sum(source.read(index).label == digit for index in range(len(source)))
            for source in (train, evaluation)
        ]
        assert counts[1] == sum(counts) // 6


def test_pixels_are_scikit_learns_scaled_from_black_to_white() -> None:
    pixels, labels = load_digits(return_X_y=True)
    source = open_digits("eval")
    for index in (0, 100, len(source) - 1):
        record = source.read(index)
        number = int(record.origin.removeprefix("digits, image "))
        with Image.open(io.BytesIO(record.encoded)) as image:
            assert (image.format, image.mode, image.size) == ("PNG", "L", (8, 8))
            expected = np.rint(pixels[number] * 255 / 16)
            assert np.array_equal(np.asarray(image).reshape(-1), expected)
        assert record.label == labels[number]


def test_split_is_the_same_at_every_call_and_small_when_pickled() -> None:
    first, second = open_digits("eval"), open_digits("eval")
    assert [first.read(i) for i in range(20)] == [second.read(i) for i in range(20)]
    assert len(pickle.dumps(open_digits("train"))) < 300_000


def test_fingerprint_is_that_of_the_images() -> None:
    source = open_digits("eval")
    encoded = [source.read(index).encoded for index in range(len(source))]
    assert source.fingerprint == fingerprint(*encoded)
    assert tuple(source.classes) == tuple("0123456789")


def test_missing_scikit_learn_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match="No module named 'sklearn'") as caught:
        open_digits("eval")
    assert caught.value.name == "sklearn"
