"""Checkpoints written here come back the same, here and in TensorFlow 1.15."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as np_st

from jumar.ground.errors import UserError
from jumar.weights.bundle_entries import decode_entry
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.index_table import read_table
from jumar.weights.tensor_bundle import open_checkpoint
from tests.tensorflow115 import run_tensorflow

NUMBERS = st.sampled_from(
    ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16", ">f4"]
)
ARRAYS = NUMBERS.flatmap(
    lambda kind: np_st.arrays(kind, np_st.array_shapes(min_dims=0, max_dims=4, min_side=0))
)
TEXTS = st.lists(st.binary(max_size=300), max_size=5).map(
    lambda texts: np.array([*texts, None], dtype=object)[:-1]
)
NAMES = st.text(min_size=1, max_size=30).filter(
    lambda name: not name.startswith("\0") and name.isprintable()
)


@settings(max_examples=60)
@given(tensors=st.dictionaries(NAMES, st.one_of(ARRAYS, TEXTS), max_size=8))
def test_written_bundle_round_trips_bitwise(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, np.ndarray]
) -> None:
    prefix = tmp_path_factory.mktemp("written") / "model.ckpt"
    write_bundle(prefix, tensors)
    bundle = open_checkpoint(prefix)
    assert bundle.names() == sorted(tensors, key=str.encode)
    for name, values in tensors.items():
        read = bundle.read(name)
        assert read.shape == values.shape
        assert read.dtype == values.dtype.newbyteorder("=")
        if values.dtype == object:
            assert read.tolist() == values.tolist()
        else:
            assert read.tobytes() == values.astype(read.dtype).tobytes()


def test_many_variables_are_written_in_several_blocks(tmp_path: Path) -> None:
    names = [f"scope_{number % 7}/layer_{number:05d}/{'x' * 90}" for number in range(6000)]
    write_bundle(tmp_path / "m", {name: np.int32(number) for number, name in enumerate(names)})
    bundle = open_checkpoint(tmp_path / "m")
    assert bundle.names() == sorted(names)
    assert all(bundle.read(name) == number for number, name in enumerate(names))
    assert (tmp_path / "m.index").stat().st_size > 2 * (1 << 17)


def test_checkpoint_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    for value in (1, 2):
        write_bundle(tmp_path / "m", {f"v{value}": np.float32(value)})
    assert open_checkpoint(tmp_path).names() == ["v2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint",
        "m.data-00000-of-00001",
        "m.index",
    ]


class Failing(dict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        if name == "b":
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().__getitem__(name)


def test_failed_write_keeps_the_previous_checkpoint(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", {"a": np.float32(1)})
    with pytest.raises(UserError, match="No space left"):
        write_bundle(tmp_path / "m", Failing(a=np.float32(2), b=np.float32(2)))
    assert open_checkpoint(tmp_path).read("a") == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_failed_first_write_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No space left"):
        write_bundle(tmp_path / "tf1" / "m", Failing(a=np.float32(2), b=np.float32(2)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "tensors",
    [{"": np.zeros(1)}, {"\0a": np.zeros(1)}, {"a": np.zeros(1, dtype="datetime64[s]")}],
)
def test_dtypes_unknown_to_tensorflow_are_refused(
    tmp_path: Path, tensors: dict[str, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=r"name|element type"):
        write_bundle(tmp_path / "m", tensors)
    assert not list(tmp_path.iterdir())


IN_TENSORFLOW = """
folder = sys.argv[1]
prefix = tf.train.latest_checkpoint(folder)
listed = [[name, shape] for name, shape in tf.train.list_variables(prefix)]
values = np.load(folder + "/values.npz")
kernel = tf.get_variable("net/kernel", values["net/kernel"].shape)
step = tf.train.get_or_create_global_step()
with tf.Session() as session:
    tf.train.Saver().restore(session, prefix)
    same = [np.array_equal(session.run(kernel), values["net/kernel"]), int(session.run(step))]
reader = tf.train.load_checkpoint(prefix)
read = {name: bool(np.array_equal(reader.get_tensor(name), values[name])) for name in values.files}
texts = [text.hex() for text in reader.get_tensor("labels")]
tf.reset_default_graph()
answer([prefix, listed, same, read, texts])
"""


def test_tensorflow_restores_our_bundles(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    tensors: dict[str, np.ndarray] = {
        "net/kernel": random.standard_normal((3, 3, 2, 5)).astype(np.float32),
        "global_step": np.array(1234, dtype=np.int64),
        "half": random.standard_normal(5).astype("f2"),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.float32),
        "complex": np.array([1 - 2j], np.complex64),
        **{f"many/{number:04d}{'x' * 90}": np.int32(number) for number in range(3000)},
    }
    labels = np.array([b"_silence_", b"", b"\xff\0"], dtype=object)
    np.savez(tmp_path / "values.npz", **tensors)  # pyright: ignore[reportArgumentType]
    write_bundle(tmp_path / "model.ckpt-1234", {**tensors, "labels": labels})
    prefix, listed, same, read, texts = run_tensorflow(IN_TENSORFLOW, str(tmp_path))
    assert prefix == str(tmp_path / "model.ckpt-1234")
    expected = {name: list(values.shape) for name, values in tensors.items()}
    assert dict(listed) == {**expected, "labels": [3]}
    assert same == [True, 1234]
    assert all(read.values())
    assert texts == [text.hex() for text in labels]


def test_tensors_have_the_expected_entry_and_bytes(tmp_path: Path) -> None:
    """The data file is what numpy writes one after the other, in the order of the names."""
    tensors: dict[str, np.ndarray] = {
        "b": np.array([[1, 2], [3, 4]], ">f4").T,
        "a": np.array([True, False, True]),
        "c": np.zeros((0, 2), np.float64),
        "d": np.array(-2, np.int16),
        "text": np.array(["ä", "b"]),
    }
    write_bundle(tmp_path / "m", tensors)
    data = (tmp_path / "m.data-00000-of-00001").read_bytes()
    numbers = b"\1\0\1" + np.array([1, 3, 2, 4], "<f4").tobytes() + b"\xfe\xff"
    assert data[:-9] == numbers
    assert data[-9:-7] == b"\2\1"
    assert data[-3:] == "äb".encode()
    index = dict(read_table((tmp_path / "m.index").read_bytes()))
    assert list(index) == [b"", b"a", b"b", b"c", b"d", b"text"]
    places = {key: decode_entry(value) for key, value in index.items() if key}
    assert {
        key: (each.kind.name, each.shape, each.offset, each.size) for key, each in places.items()
    } == {
        b"a": ("bool", (3,), 0, 3),
        b"b": ("float32", (2, 2), 3, 16),
        b"c": ("float64", (0, 2), 0, 0),
        b"d": ("int16", (), 19, 2),
        b"text": ("string", (2,), 21, 9),
    }
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "m"\nall_model_checkpoint_paths: "m"\n'
    )


def test_write_errors_are_reported_with_the_prefix(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        write_bundle(tmp_path / "m", Failing(a=np.float32(2), b=np.float32(2)))
    assert caught.value.what == "the checkpoint cannot be written: No space left on device"
    assert caught.value.where == str(tmp_path / "m")
    for name in ("", "\0a"):
        with pytest.raises(ValueError, match=r"^a variable needs a name that does not begin with"):
            write_bundle(tmp_path / "m", {"b": np.zeros(1), name: np.zeros(1)})
    with pytest.raises(ValueError, match=r"^TensorFlow has no element type for datetime64\[s\]$"):
        write_bundle(tmp_path / "m", {"a": np.zeros(1, dtype="datetime64[s]")})
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="No space left"):
        write_bundle(tmp_path / "there" / "m", Failing(a=np.float32(2), b=np.float32(2)))
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
