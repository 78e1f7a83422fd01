"""The payloads of TFRecord files, for tests."""

from pathlib import Path

from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import index_records, read_payload


def payloads_of(path: Path) -> list[bytes]:
    index, files = index_records(path), OffsetFiles([path])
    return [
        read_payload(files, 0, int(offset), int(length), str(path))
        for offset, length in zip(index.offsets, index.lengths, strict=True)
    ]
