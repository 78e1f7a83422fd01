"""TFRecord files that TensorFlow 1.15 wrote, whole, packed and damaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.data.records.example import (
    BytesFeature,
    Feature,
    FloatFeature,
    IntegerFeature,
    decode_example,
)
from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import RecordFileError, index_records, masked_crc, read_payload
from jumar.data.records.tfrecord_cache import plain_files
from jumar.data.samples import CorruptRecord
from tests.parity.fixture import ParityCase


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "formats_tfrecord.npz")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path))


def read(path: Path) -> tuple[list[bytes], str]:
    """The payloads before the first damage, and what is said of that."""
    (plain,) = plain_files([path], lambda _: None)
    payloads: list[bytes] = []
    reason = ""
    try:
        index = index_records(plain)
    except RecordFileError as error:
        index, reason = error.good, str(error)
    files = OffsetFiles([plain])
    for offset, length in zip(index.offsets, index.lengths, strict=True):
        try:
            payloads.append(read_payload(files, 0, int(offset), int(length), str(path)))
        except CorruptRecord as error:
            return payloads, str(error)
    return payloads, reason


def feature(stored: dict[str, Any]) -> Feature:
    values = stored["values"]
    if stored["kind"] == "bytes":
        return BytesFeature(tuple(bytes.fromhex(value) for value in values))
    if stored["kind"] == "float":
        return FloatFeature(tuple(values))
    return IntegerFeature(tuple(values))


def test_every_file_gives_the_records_before_its_damage_with_a_description(
    parity: Path, case: ParityCase
) -> None:
    message = {
        "truncated_payload.tfrecord": "ends inside a record",
        "truncated_header.tfrecord": "ends inside a record header",
        "bad_payload.tfrecord": "does not match",
        "bad_length.tfrecord": "checksum of a record length",
    }
    folder = parity / "formats" / "tfrecord"
    assert set(case.config["files"]) == {path.name for path in folder.iterdir()}
    for name, facts in case.config["files"].items():
        payloads, reason = read(folder / name)
        assert len(payloads) == facts["good_records_before_end"], name
        # TensorFlow says nothing of a cut header; every error of its own is one of ours.
        assert bool(reason) == (name in message), name
        assert bool(reason) or not facts["error"], name
        assert message.get(name, "") in reason, name


@pytest.mark.parametrize("name", ["plain.tfrecord", "gzip.tfrecord.gz", "zlib.tfrecord.zlib"])
def test_payloads_have_the_stored_lengths_checksums_and_features(
    parity: Path, case: ParityCase, name: str
) -> None:
    payloads, _ = read(parity / "formats" / "tfrecord" / name)
    lengths, crcs = (case.arrays[key] for key in ("record_lengths", "masked_crc_of_payload"))
    assert np.array_equal([len(payload) for payload in payloads], lengths)
    assert np.array_equal([masked_crc(payload) for payload in payloads], crcs)
    stored = case.config["examples"]
    for payload, expected in zip(payloads, stored, strict=False):
        assert decode_example(payload) == {key: feature(value) for key, value in expected.items()}
    empty, text = payloads[len(stored) :]
    assert (empty, text) == (b"", b"not a protobuf" * 5000)
    assert decode_example(empty) == {}
    with pytest.raises(ValueError, match="wire type 6 at byte 0"):
        decode_example(text)


def test_packed_unpacked_and_mixed_lists_decode_equally(parity: Path, case: ParityCase) -> None:
    payloads, _ = read(parity / "formats" / "tfrecord" / "packing.tfrecord")
    stored = case.config["packing"]
    assert len(payloads) == len(stored["records"])
    for payload in payloads:
        assert decode_example(payload) == {
            "ints": IntegerFeature(tuple(stored["ints"])),
            "floats": FloatFeature(tuple(float(np.float32(value)) for value in stored["floats"])),
            "bytes": BytesFeature(tuple(bytes.fromhex(value) for value in stored["bytes"])),
        }
