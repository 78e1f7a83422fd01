"""The set's behaviour for every kind of data: replacement, retries, collation."""

import errno
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from jumar.data.loading import keyed_set
from jumar.data.loading.collate import Padded, Stacked
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import Arrays, Batch, CorruptRecord, SampleKey
from jumar.ground.errors import UserError


@dataclass
class Words:
    """A kind of data: texts, of which some cannot be read for good or for a while."""

    texts: Sequence[str]
    refused: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Of an item: how often the system refuses to read it, and with which error."""
    undecodable: Sequence[int] = ()
    calls: Counter[int] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.texts)

    def open(self, item: int, _key: SampleKey) -> bytes:
        times, number = self.refused.get(item, (0, 0))
        self.calls[item] += 1
        if self.calls[item] <= times:
            error = OSError(number, "refused")
            raise CorruptRecord(f"text {item}", error) from error
        return self.texts[item].encode()

    def map(self, opened: bytes, item: int, key: SampleKey) -> Arrays:
        if item in self.undecodable:
            raise CorruptRecord(f"text {item}", ValueError("no text"))
        tokens = np.frombuffer(opened, dtype=np.uint8).astype(np.int32)
        return {
            "tokens": tokens,
            "item": np.asarray(item),
            "drawn": np.asarray(key.epoch * 1000 + key.index),
        }


WAITS = keyed_set.RETRY_AFTER_S
"""As they are outside of these tests."""
TEXTS = ["a", "bcd", "ef", "ghij"]
PADDED = Padded(what="texts", fields="data.batch_size", fill={"tokens": -1})


def words(kind: Words, *, training: bool = True, per_item: int = 1) -> KeyedSet[Words]:
    return KeyedSet(
        kind=kind, collate=PADDED, training=training, per_item=per_item, what="texts", todo="Look."
    )


def keys(*indices: int, epoch: int = 0) -> list[SampleKey]:
    return [SampleKey(epoch, index) for index in indices]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_set, "RETRY_AFTER_S", (0.0, 0.0, 0.0))


def test_samples_of_an_item_are_consecutive_with_distinct_keys() -> None:
    samples = words(Words(TEXTS), per_item=3)
    assert len(samples) == 12
    batch = samples.fetch(keys(0, 2, 3, 11, epoch=2)).batch
    assert batch["item"].tolist() == [0, 0, 1, 3]
    assert batch["drawn"].tolist() == [2000, 2002, 2003, 2011]


def test_next_readable_item_replaces_each_sample_of_a_broken_one() -> None:
    kind = Words(TEXTS, refused={3: (99, errno.ENOENT)}, undecodable=[0])
    fetched = words(kind, per_item=2).fetch(keys(2, 6, 7, 0))
    assert fetched.batch["item"].tolist() == [1, 1, 1, 1]
    assert fetched.batch["drawn"].tolist() == [2, 6, 7, 0]
    reasons = [str(fault) for fault in fetched.faults]
    broken = ["text 3: cannot be read: refused", "text 0: no text"]
    assert reasons == [*broken, *broken, broken[1]]


def test_evaluation_skips_broken_samples() -> None:
    fetched = words(Words(TEXTS, undecodable=[1]), training=False).fetch(keys(0, 1, 2))
    assert fetched.batch["item"].tolist() == [0, 2]
    assert [fault.origin for fault in fetched.faults] == ["text 1"]
    assert words(Words(TEXTS, undecodable=[1]), training=False).fetch(keys(1)).batch == {}


def test_set_without_a_readable_item_is_an_error_with_the_last_reason() -> None:
    with pytest.raises(
        UserError, match=r"none of the 4 texts .* the last error: no text"
    ) as caught:
        words(Words(TEXTS, undecodable=range(4))).fetch(keys(2))
    assert (caught.value.where, caught.value.todo) == ("text 1", "Look.")


@pytest.mark.parametrize("training", [True, False])
def test_transient_system_error_is_retried_and_is_not_a_fault(training: bool) -> None:
    kind = Words(TEXTS, refused={1: (2, errno.ESTALE), 2: (1, errno.EIO)})
    fetched = words(kind, training=training).fetch(keys(0, 1, 2))
    assert fetched.batch["item"].tolist() == [0, 1, 2]
    assert fetched.faults == []
    assert kind.calls == {0: 1, 1: 3, 2: 2}


def test_missing_or_damaged_item_is_not_retried() -> None:
    kind = Words(TEXTS, refused={1: (99, errno.ENOENT)}, undecodable=[2])
    words(kind).fetch(keys(1))
    assert kind.calls == {1: 1, 2: 1, 3: 1}


def test_lost_disk_is_retried_three_times_per_batch_not_per_sample() -> None:
    kind = Words(TEXTS, refused=dict.fromkeys(range(4), (99, errno.EIO)))
    with pytest.raises(UserError, match="none of the 4 texts"):
        words(kind).fetch(keys(0))
    assert kind.calls.total() == 4 + 3


def test_set_chooses_its_collation() -> None:
    kind = Words(["ab", "cd"])
    stacked = KeyedSet(kind=kind, collate=Stacked(what="texts", fields="x"), training=False)
    assert torch.equal(
        stacked.fetch(keys(0, 1)).batch["tokens"], words(kind).fetch(keys(0, 1)).batch["tokens"]
    )


def test_retries_back_off() -> None:
    assert WAITS == (0.1, 0.5, 2.0)


def test_set_has_one_sample_per_item_and_no_custom_order_by_default() -> None:
    samples = KeyedSet(kind=Words(TEXTS, undecodable=range(4)), collate=PADDED, training=True)
    assert len(samples) == 4
    assert (samples.per_item, samples.epoch_keys, samples.finish) == (1, None, None)
    assert samples.fingerprint == ""
    with pytest.raises(UserError) as caught:
        samples.fetch(keys(3))
    assert str(caught.value) == (
        "text 2: none of the 4 samples can be read; the last error: no text"
    )


class KnownWords(Words):
    """Words with a fingerprint, that record what is read next."""

    ahead: Sequence[int] = ()
    fingerprint = "of words"

    def read_ahead(self, items: Sequence[int]) -> None:
        self.ahead = items


def test_upcoming_items_are_announced_and_a_set_may_finish_its_batches() -> None:
    kind = KnownWords(TEXTS)

    def finish(batch: Batch, asked: Sequence[SampleKey]) -> Batch:
        return {**batch, "asked": torch.tensor([key.index for key in asked])}

    samples = KeyedSet(kind=kind, collate=PADDED, training=True, per_item=2, finish=finish)
    batch = samples.fetch(keys(7, 0, 3)).batch
    assert kind.ahead == [3, 0, 1]
    assert batch["asked"].tolist() == [7, 0, 3]
    assert batch["item"].tolist() == [3, 0, 1]
    assert samples.fingerprint == "of words"
