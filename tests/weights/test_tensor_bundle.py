"""Checkpoints that TensorFlow wrote are read value by value; damaged ones are refused by name."""

import contextlib
import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.records.tfrecord import masked_crc
from jumar.data.records.wire import delimited, encode_varint
from jumar.ground.errors import UserError
from jumar.weights import index_table
from jumar.weights.bundle_entries import Extent, encode_header, slice_key
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.checkpoint_paths import is_checkpoint
from jumar.weights.index_table import build_table, read_table
from jumar.weights.tensor_bundle import TensorBundle, open_checkpoint
from tests.tensorflow115 import run_tensorflow


@pytest.fixture(scope="module")
def written(parity: Path) -> Any:
    return np.load(parity / "formats_checkpoints.npz", allow_pickle=False)


@pytest.fixture(scope="module")
def config(written: Any) -> dict[str, Any]:
    return json.loads(written["meta"].tobytes())["config"]


@pytest.mark.parametrize("case", ["single", "sharded", "partitioned", "train_state"])
def test_what_tensorflow_wrote_is_read_in_value_shape_and_type(
    parity: Path, written: Any, config: dict[str, Any], case: str
) -> None:
    bundle = open_checkpoint(parity / "formats" / "checkpoints" / case)
    variables = config[case]["variables"]
    assert set(bundle.names()) == set(variables)
    for name, expected in variables.items():
        values = bundle.read(name)
        assert bundle.entry(name).shape == values.shape == tuple(expected["shape"]), name
        assert bundle.entry(name).dtype == {"float16": "half"}.get(
            expected["dtype"], expected["dtype"]
        )
        if "strings" in expected:
            assert [text.hex() for text in values.flat] == expected["strings"]
        else:
            reference = written[f"{case}/{name}"]
            np.testing.assert_array_equal(values, reference, err_msg=name)
            assert values.dtype == reference.dtype, name


@pytest.mark.parametrize("name", ["emb/table", "wide"])
def test_parts_of_a_variable_are_put_together(parity: Path, written: Any, name: str) -> None:
    bundle = open_checkpoint(parity / "formats" / "checkpoints" / "partitioned")
    np.testing.assert_array_equal(bundle.read(name), written[f"partitioned_full/{name}"])


IN_PARTS = """
values = np.arange(140000, dtype=np.int64).reshape(70000, 2)
def rows(shape, dtype, partition_info):
    begin = partition_info.var_offset[0]
    return tf.constant(values[begin : begin + int(shape[0])])
tf.get_variable("table", [70000, 2], tf.int64, rows, partitioner=tf.fixed_size_partitioner(7))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    answer(tf.train.Saver().save(session, sys.argv[1] + "/model.ckpt"))
"""


def test_parts_that_begin_far_into_a_variable_are_found(tmp_path: Path) -> None:
    prefix = run_tensorflow(IN_PARTS, str(tmp_path))
    values = open_checkpoint(Path(prefix)).read("table")
    np.testing.assert_array_equal(values, np.arange(140_000).reshape(70_000, 2))


def test_an_index_of_several_blocks_is_read_to_its_end(
    parity: Path, config: dict[str, Any]
) -> None:
    bundle = open_checkpoint(parity / "formats" / "checkpoints" / "many_blocks")
    seed = config["many_blocks"]["seed"]
    assert len(bundle.names()) == 5000
    for number in range(0, 5000, 7):
        digest = hashlib.sha1(f"{number}-{seed}".encode()).hexdigest()
        assert bundle.read(f"layer_{digest}/weight") == (number * 37 % 1009) / 8


def test_a_flipped_bit_costs_its_own_variable_alone(parity: Path, config: dict[str, Any]) -> None:
    bundle = open_checkpoint(parity / "formats" / "checkpoints" / "damaged")
    with pytest.raises(UserError, match=r"variable 'net/conv/kernel'.*checksum"):
        bundle.read("net/conv/kernel")
    for name in bundle.names():
        if name != "net/conv/kernel":
            bundle.read(name)


def test_the_old_format_of_one_file_is_named(parity: Path) -> None:
    folder = parity / "formats" / "checkpoints" / "v1_format"
    for path in (folder, folder / "model.ckpt"):
        assert is_checkpoint(path) is (path != folder)
        with pytest.raises(UserError, match=r"format V1.*\n.*Saver"):
            open_checkpoint(path)


def test_a_checkpoint_without_its_data_lists_what_it_holds(shared: Path) -> None:
    bundle = open_checkpoint(shared / "data" / "pretrained" / "videnn-names")
    assert len(bundle.names()) == 275
    assert bundle.entry("block1/conv2d/kernel").shape == (3, 3, 3, 128)
    with pytest.raises(
        UserError, match=r"data-00000-of-00001: the data file that holds .* is missing"
    ):
        bundle.read("block1/conv2d/kernel")


def test_a_saved_model_is_opened_by_its_folder(shared: Path, tmp_path: Path) -> None:
    source = shared / "data" / "pretrained" / "tiny-kws-ref"
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").symlink_to(source / "saved_model.pb")
    for file in ("variables.index", "variables.data-00000-of-00001"):
        (tmp_path / "variables" / file).symlink_to(source / file)
    bundle = open_checkpoint(tmp_path)
    assert len(bundle.names()) == 142
    assert sum(bundle.read(name).size for name in bundle.names()) > 1000


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The prefix of a small checkpoint."""
    prefix = tmp_path / "run" / "model.ckpt-7"
    tensors = {"a/kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32(4)}
    write_bundle(prefix, {**tensors, "text": np.array([b"x", b"yz"], dtype=object)})
    return prefix


@pytest.mark.parametrize(
    "name",
    ["", "checkpoint", "model.ckpt-7", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001"],
)
def test_a_checkpoint_is_found_by_any_of_its_names(model: Path, name: str) -> None:
    path = model.parent / name
    assert is_checkpoint(path)
    assert open_checkpoint(path).names() == ["a/kernel", "b", "text"]


def test_a_moved_folder_is_found_though_its_checkpoint_file_names_the_old_one(model: Path) -> None:
    old = "/there/before/\\303\\244/model.ckpt-7"
    (model.parent / "checkpoint").write_text(f'model_checkpoint_path: "{old}"\n')
    assert open_checkpoint(model.parent).prefix == model


def test_a_folder_with_one_index_needs_no_checkpoint_file(model: Path) -> None:
    (model.parent / "checkpoint").unlink()
    assert open_checkpoint(model.parent).prefix == model
    write_bundle(model.with_name("other"), {"a": np.zeros(1)})
    (model.parent / "checkpoint").unlink()
    with pytest.raises(UserError, match="2 checkpoints and no file"):
        open_checkpoint(model.parent)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none", None, "there is no such checkpoint"),
        ("none.index", None, "there is no '.*none.index'"),
        ("checkpoint", b"nothing", "names no model_checkpoint_path"),
        ("checkpoint", b'model_checkpoint_path: "gone"', "names 'gone'"),
        ("checkpoint", b'model_checkpoint_path: ".."', "names '..'"),
        ("checkpoint", b'model_checkpoint_path: "' + b"x" * 5000 + b'"', "File name too long"),
        ("some.pb", b"xyz", "is not a TensorFlow checkpoint"),
        ("empty.index", b"", "does not end like an index"),
    ],
)
def test_what_is_no_checkpoint_is_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        open_checkpoint(tmp_path / name)


def test_an_unknown_variable_is_answered_with_the_nearest(model: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'a/kernel'"):
        open_checkpoint(model).read("a/kernal")


def test_a_data_file_that_is_cut_is_named(model: Path) -> None:
    data = model.with_name(f"{model.name}.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:10])
    with pytest.raises(UserError, match=r"variable 'a/kernel'.*data file is too short"):
        open_checkpoint(model).read("a/kernel")


def number(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value % 2**64)


def entry(
    *, kind: int = 1, shape: tuple[int, ...] = (2,), shard: int = 0, offset: int = 0, size: int = 8
) -> bytes:
    sizes = b"".join(delimited(2, number(1, length)) for length in shape)
    return b"".join(
        (number(1, kind), delimited(2, sizes), number(3, shard), number(4, offset), number(5, size))
    )


def part(*extents: tuple[int, int]) -> bytes:
    inner = b"".join(
        delimited(1, number(1, start) + number(2, length)) for start, length in extents
    )
    return delimited(7, inner)


def indexed(*entries: tuple[bytes, bytes]) -> bytes:
    return build_table([(b"", encode_header()), *entries])


@contextlib.contextmanager
def little_memory(limit: int = 2_000_000) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


SLICED = slice_key(b"v", (Extent(0, 2),))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        pytest.param([(b"v", entry(size=2**62))], "needs 8", id="an absurd size"),
        pytest.param(
            [(b"v", entry(offset=2**62))], "data file is too short", id="an absurd offset"
        ),
        pytest.param([(b"v", entry(offset=-1))], "negative position", id="a negative offset"),
        pytest.param(
            [(b"v", entry(shape=(2**40,), size=2**42))], "data file is too short", id="a shape"
        ),
        pytest.param([(b"v", entry(shape=(2**40, 2**40)))], "no memory", id="a larger shape"),
        pytest.param([(b"v", entry(shape=(-1,)))], "negative or unknown", id="a negative axis"),
        pytest.param([(b"v", entry(shape=(1,) * 99))], "axes", id="99 axes"),
        pytest.param([(b"v", entry(kind=20))], "element type 20", id="an element type"),
        pytest.param([(b"v", entry(shard=7))], "data file 7 of 1", id="a shard"),
        pytest.param([(b"v", entry(kind=7, shape=(2**40,)))], "strings in 8", id="strings"),
        pytest.param([(b"v", entry(kind=7, shape=(3,)))], "checksum of its strings", id="lengths"),
        pytest.param([(b"v", entry(kind=7, shape=(1,), size=4))], "of its strings", id="no string"),
        pytest.param(
            [(b"u", entry()), (b"v", entry(offset=4))], "'u' and 'v' share bytes", id="overlap"
        ),
        pytest.param([(b"v", entry() + b"\xff")], "variable 'v': a varint", id="no message"),
        pytest.param([(b"v", entry(size=0) + part((0, 2)))], "parts is missing", id="no part"),
        pytest.param(
            [(SLICED, entry()), (b"v", entry(size=0) + part((0, 2)) * 2)],
            "do not cover",
            id="a part twice",
        ),
        pytest.param(
            [(SLICED, entry()), (b"v", entry(shape=(2**50,), size=0) + part((0, 2)))],
            "do not cover",
            id="parts of a shape without data",
        ),
        pytest.param(
            [(SLICED, entry()), (b"v", entry(shape=(1,), size=0) + part((0, 2)))],
            "ends at 2 on an axis of 1",
            id="a part outside",
        ),
        pytest.param(
            [(SLICED, entry(kind=9)), (b"v", entry(size=0) + part((0, 2)))],
            "a part for 2 is 2",
            id="a part of another type",
        ),
        pytest.param(
            [(b"v", entry(size=0) + part((0, 2), (0, 2)))],
            "does not have its 1 axes",
            id="part's axes",
        ),
        pytest.param(
            [(b"v", entry(size=0) + part((-1, 2)))], "before the array", id="a part before"
        ),
    ],
)
def test_hostile_numbers_are_refused_by_name_without_memory(
    tmp_path: Path, entries: list[tuple[bytes, bytes]], message: str
) -> None:
    (tmp_path / "m.index").write_bytes(indexed(*sorted(entries)))
    (tmp_path / "m.data-00000-of-00001").write_bytes(b"\1" * 64)
    with little_memory(), pytest.raises(UserError, match=message) as caught:
        open_checkpoint(tmp_path / "m").read("v")
    assert str(tmp_path / "m") in str(caught.value)
    assert "'v'" in str(caught.value)


def test_overlapping_parts_are_refused(tmp_path: Path) -> None:
    shape = (2, 2)
    parts = {(0, 0): (1, 2), (0, 1): (2, 1)}
    slices = b""
    keys: list[tuple[bytes, bytes]] = []
    tensors = np.arange(4, dtype=np.float32)
    write_bundle(tmp_path / "m", {"a": tensors[:2], "b": tensors[2:]})
    values = dict(read_table((tmp_path / "m.index").read_bytes()))
    for source, (start, length) in zip((b"a", b"b"), parts.items(), strict=True):
        slices += part(*zip(start, length, strict=True))
        key = slice_key(b"v", tuple(map(Extent, start, length)))
        sizes = b"".join(delimited(2, number(1, size)) for size in length)
        keys.append((key, values[source] + delimited(2, sizes)))
    whole = entry(shape=shape, size=0) + slices
    (tmp_path / "m.index").write_bytes(indexed(*sorted(keys), (b"v", whole)))
    with pytest.raises(UserError, match="its parts overlap"):
        open_checkpoint(tmp_path / "m").read("v")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "does not end like"),
        (lambda data: data[20:], "checksum|block"),
        (lambda data: b"\xff" + data[1:], "checksum"),
        (lambda data: build_table([]), "no header"),
        (lambda data: build_table([(b"a", b"")]), "no header"),
        (lambda data: build_table([(b"", b"\x10\x01")]), "big-endian"),
        (lambda data: build_table([(b"", delimited(3, number(2, 9)))]), "newer format"),
        (lambda data: build_table([(b"", b""), (b"b", entry()), (b"a", entry())]), "not in order"),
        (lambda data: build_table([(b"", b""), (b"b", entry()), (b"b", entry())]), "not in order"),
    ],
)
def test_a_damaged_index_is_refused(model: Path, change: Any, message: str) -> None:
    index = model.with_name(f"{model.name}.index")
    index.write_bytes(change(index.read_bytes()))
    with pytest.raises(UserError, match=message) as caught:
        open_checkpoint(model)
    assert str(index) in str(caught.value)


def test_a_name_cannot_command_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(indexed((b"a\x1b[2J", entry()), (b"b\xff", entry(size=0))))
    assert open_checkpoint(tmp_path / "m").names() == ["a\\x1b[2J", "b\\xff"]


def test_a_compressed_index_is_named_as_such() -> None:
    data = bytearray(indexed((b"v", entry())))
    end = data.index(b"\0" * 4 + b"\1\0\0\0\0") + 8
    data[end] = 1
    data[end + 1 : end + 5] = masked_crc(bytes(data[: end + 1])).to_bytes(4, "little")
    with pytest.raises(UserError, match="Snappy"):
        TensorBundle(Path("m"), bytes(data))


def test_names_that_grow_out_of_a_small_file_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    name = b"n" * 5_000
    entries = [(name + bytes((i >> 8, i & 255)), entry(size=0, shape=(0,))) for i in range(1000)]
    assert list(read_table(build_table(entries))) == entries
    # No writer makes a table of which one key alone is whole.
    monkeypatch.setattr(index_table, "_WHOLE_KEY_EVERY", 10**9)
    monkeypatch.setattr(index_table, "_BLOCK_BYTES", 1 << 40)
    with pytest.raises(ValueError, match="too long for the size"):
        list(read_table(build_table(entries)))


@settings(max_examples=120)
@given(st.data())
def test_any_damage_is_an_error_that_a_user_can_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Numbers of the index are changed under a right checksum, bytes of the files without."""
    folder = tmp_path_factory.mktemp("fuzz")
    values = {"a": np.arange(6.0), "s": np.array([b"x", b""], object), "w": np.ones((2, 2), "i2")}
    write_bundle(folder / "m", values)
    index = folder / "m.index"
    table = [(key, bytearray(value)) for key, value in read_table(index.read_bytes())]
    for _ in range(data.draw(st.integers(0, 3))):
        _, value = table[data.draw(st.integers(0, len(table) - 1))]
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    index.write_bytes(build_table((key, bytes(value)) for key, value in table))
    for path in (index, folder / "m.data-00000-of-00001"):
        if data.draw(st.booleans()):
            content = bytearray(path.read_bytes())
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
            path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with little_memory(20_000_000), contextlib.suppress(UserError):
        bundle = open_checkpoint(folder / "m")
        for name in bundle.names():
            with contextlib.suppress(UserError):
                assert bundle.read(name).shape == bundle.entry(name).shape


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=20))
def test_slice_keys_sort_as_their_numbers(starts: list[int]) -> None:
    keys = [slice_key(b"v", (Extent(start, 1),)) for start in starts]
    assert [starts[i] for i in sorted(range(len(keys)), key=keys.__getitem__)] == sorted(starts)


@given(st.lists(st.binary(max_size=6), min_size=2, max_size=20, unique=True))
def test_slice_keys_sort_as_their_names(names: list[bytes]) -> None:
    keys = {slice_key(name, (Extent(),)): name for name in names}
    assert len(keys) == len(names)
    assert [keys[key] for key in sorted(keys)] == sorted(names)
