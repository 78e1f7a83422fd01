"""Serialized instances, compared with the general encoder of tf.Example."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.records.example import FloatFeature, IntegerFeature, decode_example
from jumar.data.text.instance_batch import batch_of, payloads
from jumar.data.text.original_order import Instance
from jumar.data.text.pretraining_options import PretrainingOptions

LENGTH, WIDTH = 200, 20
OPTIONS = PretrainingOptions(max_seq_length=LENGTH, max_predictions_per_seq=WIDTH)
NUMBER = st.one_of(st.integers(0, 300), st.integers(0, 2**21 - 1))


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    pieces = draw(st.integers(5, LENGTH))
    count = draw(st.integers(1, min(WIDTH, pieces)))
    places = draw(st.sets(st.integers(0, pieces - 1), min_size=count, max_size=count))
    return Instance(
        ids=draw(st.lists(NUMBER, min_size=pieces, max_size=pieces)),
        first=draw(st.integers(1, pieces - 4)),
        is_random_next=draw(st.booleans()),
        positions=sorted(places),
        labels=draw(st.lists(NUMBER, min_size=count, max_size=count)),
    )


@given(st.lists(instances(), min_size=1, max_size=4))
def test_records_have_the_content_of_the_instances(several: list[Instance]) -> None:
    for each, payload in zip(several, payloads(batch_of(several, OPTIONS)), strict=True):
        pieces, count, first = len(each.ids), len(each.labels), each.first + 2

        def padded(numbers: list[int], length: int) -> IntegerFeature:
            return IntegerFeature((*numbers, *(0,) * (length - len(numbers))))

        assert decode_example(payload) == {
            "input_ids": padded(each.ids, LENGTH),
            "input_mask": padded([1] * pieces, LENGTH),
            "segment_ids": padded([0] * first + [1] * (pieces - first), LENGTH),
            "masked_lm_positions": padded(each.positions, WIDTH),
            "masked_lm_ids": padded(each.labels, WIDTH),
            "masked_lm_weights": FloatFeature((1.0,) * count + (0.0,) * (WIDTH - count)),
            "next_sentence_labels": IntegerFeature((int(each.is_random_next),)),
        }


def test_arrays_have_the_content_of_the_instances() -> None:
    several = [
        Instance([2, 7, 3, 8, 3], 1, True, [1], [9]),
        Instance([2, 5, 6, 3, 8, 3], 2, False, [2], [4]),
    ]
    batch = batch_of(several, OPTIONS)
    assert len(batch) == 2
    np.testing.assert_array_equal(batch.lengths, [5, 6])
    np.testing.assert_array_equal(batch.firsts, [3, 4])
    np.testing.assert_array_equal(batch.ids[1, :7], [2, 5, 6, 3, 8, 3, 0])
    np.testing.assert_array_equal(batch.random_next, [True, False])


@pytest.mark.parametrize("largest", [1, 127, 128, 255, 256, 16383, 16384, 16385, 2**21 - 1])
def test_varints_are_written_correctly_at_length_boundaries(largest: int) -> None:
    rows = [[2, largest, 3, largest - 1, 3], [2, 1, largest, 3, largest, 3]]
    several = [
        Instance(rows[0], 1, True, [1, 3], [largest, 0]),
        Instance(rows[1], 2, False, [2], [largest - 1]),
    ]
    for each, payload in zip(several, payloads(batch_of(several, OPTIONS)), strict=True):
        decoded = decode_example(payload)
        ids, labels = decoded["input_ids"], decoded["masked_lm_ids"]
        assert ids == IntegerFeature((*each.ids, *(0,) * (LENGTH - len(each.ids))))
        assert labels == IntegerFeature((*each.labels, *(0,) * (WIDTH - len(each.labels))))
