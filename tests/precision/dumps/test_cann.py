"""CANN's files made by hand: raw ones byte by byte, decoded ones by numpy."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.cann import DECODED, GOLDEN, RAW, read_decoded, read_raw
from jumar.precision.dumps.dump import Dump, Value

TIME = "1767268800001000"
LATER = "1767268800001005"


def number(value: int) -> bytes:
    """A varint, as protobuf's encoding guide has it."""
    parts = []
    while value > 127:
        parts.append(value % 128 + 128)
        value //= 128
    return bytes([*parts, value])


def field(key: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return number(key * 8) + number(content)
    return number(key * 8 + 2) + number(len(content)) + content


def described(dtype: int, shape: list[int], size: int, size_field: int, *, packed: bool) -> bytes:
    extents = (
        field(1, b"".join(map(number, shape)))
        if packed
        else b"".join(field(1, extent) for extent in shape)
    )
    extra = field(2, 7) + field(9, b"else")
    return field(1, dtype) + extra + field(3, field(2, 1) + extents) + field(size_field, size)


def raw(path: Path, *parts: tuple[int, bytes, bytes]) -> Path:
    """A raw file of described tensors, each with the number of its field and its bytes."""
    message = field(1, b"2.0") + b"".join(field(key, text) for key, text, _ in parts)
    content = b"".join(data for _, _, data in parts)
    path.write_bytes(struct.pack("<Q", len(message)) + message + content)
    return path


def tensors(dump: Dump) -> list[tuple[str, str, list[Any]]]:
    assert dump.tensors is not None
    return [
        (value.role, value.name, dump.tensors.read(value.tensor or "").tolist())
        for call in dump.calls
        for value in call.values
    ]


FLOATS = np.arange(6, dtype=np.float32)
HALVES = np.arange(300, dtype=np.float16)
BYTES = np.array([[1, 2]], np.uint8)


def a_raw_file(folder: Path, time: str = TIME) -> Path:
    return raw(
        folder / f"MatMulV2.net_MatMul.3.12.{time}",
        (4, described(1, [2, 3], 24, 5, packed=True), FLOATS.tobytes()),
        (4, described(2, [300], 600, 5, packed=False), HALVES.tobytes()),
        (3, described(4, [1, 2], 2, 6, packed=True), BYTES.tobytes()),
        (3, described(7, [0], 0, 6, packed=True), b""),
        (5, field(2, 8), b"x" * 8),
        (8, field(2, 4), b"y" * 4),
    )


def test_raw_file_has_inputs_then_outputs_then_ignored_data(tmp_path: Path) -> None:
    path = a_raw_file(tmp_path)
    dump = read_raw(tmp_path, [path])
    assert (dump.where, dump.tool, dump.framework, dump.notices) == (tmp_path, "CANN", "", [])
    (call,) = dump.calls
    assert (call.kind, call.op, call.layer, call.number, call.phase, call.cann) == (
        *("op", "MatMulV2", "net_MatMul", 0, "forward", "MatMulV2"),
    )

    def value(role: Any, name: str, dtype: str, *shape: int) -> Value:
        tensor = f"{path.name}:{role}.{name}"
        return Value(role=role, name=name, dtype=dtype, shape=shape, tensor=tensor)

    assert call.values == (
        value("input", "0", "float32", 2, 3),
        value("input", "1", "float16", 300),
        value("output", "0", "uint8", 1, 2),
        value("output", "1", "int32", 0),
    )
    assert tensors(dump) == [
        ("input", "0", FLOATS.reshape(2, 3).tolist()),
        ("input", "1", HALVES.tolist()),
        ("output", "0", [[1, 2]]),
        ("output", "1", []),
    ]
    assert dump.tensors is not None
    with pytest.raises(UserError, match="the dump contains no tensor 'x'"):
        dump.tensors.read("x")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="has 2 bytes, which contradicts its shape"):
        dump.tensors.read(f"{path.name}:output.0")
    path.unlink()
    with pytest.raises(UserError):
        dump.tensors.read(f"{path.name}:output.0")


DTYPES = {
    **{1: "float32", 2: "float16", 3: "int8", 4: "uint8", 6: "int16", 7: "int32", 8: "int64"},
    **{11: "bool", 12: "float64", 27: "bfloat16", 34: "float8_e5m2", 35: "float8_e4m3fn"},
}


@pytest.mark.parametrize("dtype", range(37))
def test_dtype_codes_match_ge_data_types(tmp_path: Path, dtype: int) -> None:
    path = tmp_path / f"Abs.a.1.{TIME}"
    raw(path, (3, described(dtype, [1], 8, 6, packed=True), b"\0" * 8))
    dump = read_raw(tmp_path, [path])
    result = [value.dtype for call in dump.calls for value in call.values]
    assert result == [name for known, name in DTYPES.items() if known == dtype]
    unknown = f"{path.name}:output.0 has an unknown dtype; ignored."
    assert dump.notices == ([] if dtype in DTYPES else [unknown])


def test_truncated_raw_file_error_names_the_offset(tmp_path: Path) -> None:
    path = a_raw_file(tmp_path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    for content, message in (
        (whole[:-1], f"it has {len(whole) - 1} of {len(whole)} bytes"),
        (whole[:20], f"its message has 12 of {length} bytes"),
        (struct.pack("<Q", 2**26 + 1), "its message would have 67108865 bytes"),
        (struct.pack("<Q", 2**26), "its message has 0 of 67108864 bytes"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError) as error:
            read_raw(tmp_path, [path])
        assert error.value.what == f"is truncated, or not a dump of CANN: {message}"
        assert (error.value.where, error.value.todo) == (str(path), "Copy it again.")
    path.write_bytes(whole + b"more")
    assert len(read_raw(tmp_path, [path]).calls) == 1


def test_ops_are_ordered_by_time_and_numbered_and_gradients_are_backward(tmp_path: Path) -> None:
    names = (
        f"Mul.gradients_a.1.2.{LATER}",
        f"Abs.a.7.2.{LATER}",
        f"Abs.a.9.2.{TIME}",
        f"Abs.b.9.2.{TIME[:-1]}1",
    )
    one = (3, described(1, [1], 4, 6, packed=True), b"\0" * 4)
    files = [raw(tmp_path / name, one) for name in names]
    dump = read_raw(tmp_path, [*files, tmp_path / "other"])
    assert [(call.op, call.layer, call.number, call.phase) for call in dump.calls] == [
        ("Abs", "a", 0, "forward"),
        ("Abs", "b", 0, "forward"),
        ("Mul", "gradients_a", 0, "backward"),
        ("Abs", "a", 1, "forward"),
    ]
    assert [call.values[0].tensor for call in dump.calls] == [
        f"{names[at]}:output.0" for at in (2, 3, 0, 1)
    ]
    assert dump.notices == ["other is not named like a dump; ignored."]


def test_long_names_are_looked_up_in_a_table_file(tmp_path: Path) -> None:
    (tmp_path / "mapping.csv").write_text(f"123,Abs.long.1.2.{TIME}\nodd\n")
    path = raw(tmp_path / "123", (3, described(1, [1], 4, 6, packed=True), b"\0" * 4))
    dump = read_raw(tmp_path, [path])
    assert [(call.op, call.layer) for call in dump.calls] == [("Abs", "long")]
    assert tensors(dump) == [("output", "0", [0.0])]
    (tmp_path / "mapping.csv").write_text(f"1.npy,Abs.long.1.2.{TIME}.input.3.npy\n")
    np.save(tmp_path / "1.npy", FLOATS)
    (call,) = read_decoded(tmp_path, [tmp_path / "1.npy"]).calls
    assert (call.op, call.layer, call.values[0].name) == ("Abs", "long", "3")


def saved(folder: Path, name: str, array: Any = FLOATS) -> Path:
    path = folder / name
    np.save(path, array)
    return path


def test_decoded_tensors_of_one_op_and_time_are_one_call(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, f"MatMulV2.net.3.12.{LATER}.output.0.npy", HALVES.reshape(3, 100)),
        saved(tmp_path, f"MatMulV2.net.3.12.{LATER}.input.10.npy"),
        saved(tmp_path, f"MatMulV2.net.3.12.{LATER}.input.9.npy"),
        saved(tmp_path, f"MatMulV2.net.3.{TIME}.output.00.npy"),
    ]
    dump = read_decoded(tmp_path, [saved(tmp_path, "odd.npy"), *files])
    assert (dump.where, dump.tool, dump.framework) == (tmp_path, "CANN, decoded", "")
    assert dump.notices == ["1 file with other names ignored."]
    first, second = dump.calls
    assert [(call.op, call.layer, call.number, call.cann) for call in dump.calls] == [
        ("MatMulV2", "net", number, "MatMulV2") for number in (0, 1)
    ]
    assert [(value.role, value.name) for value in first.values] == [("output", "0")]
    assert second.values == (
        Value(role="input", name="9", dtype="float32", shape=(6,), tensor=files[2].name),
        Value(role="input", name="10", dtype="float32", shape=(6,), tensor=files[1].name),
        Value(role="output", name="0", dtype="float16", shape=(3, 100), tensor=files[0].name),
    )
    assert dump.tensors is not None
    assert torch.equal(dump.tensors.read(files[1].name), torch.from_numpy(FLOATS))


def test_tensorflow_outputs_with_different_times_are_one_op(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, f"net.1.{LATER}.npy"),
        saved(tmp_path, f"other.0.{TIME[:-1]}2.npy"),
        saved(tmp_path, f"net.0.{TIME}.npy", BYTES),
    ]
    dump = read_decoded(tmp_path, files)
    assert (dump.tool, dump.framework, dump.notices) == ("TensorFlow", "tensorflow", [])
    assert [(call.op, call.layer, call.number) for call in dump.calls] == [
        ("", "net", 0),
        ("", "other", 0),
    ]
    assert [(value.role, value.name, value.dtype) for value in dump.calls[0].values] == [
        ("output", "0", "uint8"),
        ("output", "1", "float32"),
    ]


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        (f"A.b.1.{TIME}", "raw"),
        (f"A.b.c.1.2.{TIME}.0.1", "raw"),
        (f"A.b.1.2.{TIME[:-1]}", ""),
        (f"A.b.1.2.{TIME}0", ""),
        (f"A.b.1.2.{TIME}.input.0.npy", "decoded golden"),
        (f"A.b.1.2.{TIME}.1.output.0.npy", "decoded"),
        (f"b.0.{TIME}.npy", "golden"),
        (f"b.0.{TIME}.txt", ""),
    ],
)
def test_files_are_recognised_by_name(name: str, matches: str) -> None:
    forms = {"raw": RAW, "decoded": DECODED, "golden": GOLDEN}
    result = [form for form, pattern in forms.items() if pattern.fullmatch(name)]
    assert result == [
        form for form in matches.split() if form != "golden" or "decoded" not in matches
    ]
