"""The kind of a file by its first bytes."""

from pathlib import Path

import pytest

from jumar.profiling.reading.files.recognition import recognised


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"SQLite format 3\x00...", "sqlite"),
        (b"PK\x03\x04...", "zip"),
        (b"", ""),
        (b"nothing of note", ""),
        (b" [ ]", "trace"),
        (b'[{"ph": "X"}]', "trace"),
        (b'[{"pH": "X"}]', ""),
        (b"[1]", ""),
        (b'[{"ph": 1, "fullname": 2, "data_type": 3}]', "mindspore_timeline"),
        (b'[{"ph": 1, "fullname": 2}]', "trace"),
        (b'[{"ph": 1, "name": "HCCL", "x": "Communication Kernel"}]', "hccl_trace"),
        (b'[{"ph": 1, "name": "HCCL", "x": "Communication Kernel", "y": "CANN"}]', "trace"),
        (b'[{"name": "HCCL", "x": "Communication Kernel"}]', ""),
        (b'{"traceEvents": []}', "trace"),
        (b'{"schemaVersion": 1}', "trace"),
        (b'{"x": {"Communication Time Info": {}}}', "communication"),
        (b'{"Transport Type": 1, "p2p": 2}', "communication_matrix"),
        (b'{"common_config": 1}', "profiler_info"),
        (b'{"p2p": 1}', "communication"),
        (b'{"other": 1}', ""),
        (b"Step,Computing,Communication,Free\n", "step_trace_time"),
        (b"op compute time of x", "mindspore_op_text"),
        (b"x" * 385 + b"op compute time", "mindspore_op_text"),
        (b"x" * 386 + b"op compute time", ""),
        (b"serial_number node_type_name x", "mindspore_aicpu_text"),
    ],
)
def test_file_is_recognised_by_its_first_bytes(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "any_name"
    path.write_bytes(content)
    assert recognised(path) == kind


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("min_cycle_counter_0.txt", "123.0\n", "mindspore_clock"),
        ("min_cycle_counter_0.txt", "9" * 18, "mindspore_clock"),
        ("min_cycle_counter_0.txt", "9" * 19, ""),
        ("min_cycle_counter_0.txt", "12.5", ""),
        ("other_0.txt", "123.0\n", ""),
    ],
)
def test_single_number_file_is_recognised_by_name(
    tmp_path: Path, name: str, text: str, kind: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert recognised(path) == kind
