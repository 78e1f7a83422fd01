"""What data sets, loader and trainer pass to each other."""

import hashlib
import struct
import subprocess
import sys

import pytest

from jumar.data.samples import (
    CorruptRecord,
    Fault,
    Fetched,
    Record,
    fingerprint,
    fingerprint_of,
    read_ahead,
)


class Store:
    """Data that are known and read ahead."""

    fingerprint = "0123456789abcdef"

    def __init__(self) -> None:
        self.wanted: list[list[int]] = []

    def read_ahead(self, items: list[int]) -> None:
        self.wanted.append(items)


def test_prefetching_data_receives_the_next_items() -> None:
    store = Store()
    read_ahead(store, [3, 1])
    read_ahead(object(), [3, 1])
    assert store.wanted == [[3, 1]]
    assert fingerprint_of(store) == "0123456789abcdef"


def test_fingerprint_is_a_hash_of_lengths_and_contents() -> None:
    digest = hashlib.sha256(struct.pack("<Q", 3) + b"abc" + struct.pack("<Q", 0) + b"")
    assert fingerprint(b"abc", b"") == digest.hexdigest()[:16]
    assert fingerprint() == hashlib.sha256().hexdigest()[:16] == "e3b0c44298fc1c14"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("is empty", "is empty"),
        (ValueError("is damaged"), "is damaged"),
        (FileNotFoundError(2, "No such file", "/a.jpg"), "cannot be read: No such file"),
    ],
)
def test_fault_has_a_location_and_a_reason(reason: str | Exception, text: str) -> None:
    error = CorruptRecord("a.jpg, byte 7", reason)
    assert error.fault == Fault(origin="a.jpg, byte 7", reason=text)
    assert str(error) == str(error.fault) == f"a.jpg, byte 7: {text}"


def test_records_have_no_boxes_and_batches_no_faults_by_default() -> None:
    assert Record(encoded=b"", label=0, origin="").boxes == ()
    assert Fetched(batch={}).faults == ()


def test_data_modules_do_not_import_torch() -> None:
    code = "import sys, jumar.data.samples; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
