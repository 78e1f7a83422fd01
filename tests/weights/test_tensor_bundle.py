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
def test_tensorflow_bundles_are_read_with_value_shape_and_type(
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
def test_parts_of_a_variable_are_assembled(parity: Path, written: Any, name: str) -> None:
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


def test_parts_starting_far_into_a_variable_are_found(tmp_path: Path) -> None:
    prefix = run_tensorflow(IN_PARTS, str(tmp_path))
    values = open_checkpoint(Path(prefix)).read("table")
    np.testing.assert_array_equal(values, np.arange(140_000).reshape(70_000, 2))


def test_multi_block_index_is_read_to_its_end(parity: Path, config: dict[str, Any]) -> None:
    bundle = open_checkpoint(parity / "formats" / "checkpoints" / "many_blocks")
    seed = config["many_blocks"]["seed"]
    assert len(bundle.names()) == 5000
    for number in range(0, 5000, 7):
        digest = hashlib.sha1(f"{number}-{seed}".encode()).hexdigest()
        assert bundle.read(f"layer_{digest}/weight") == (number * 37 % 1009) / 8


def test_flipped_bit_affects_only_its_variable(parity: Path, config: dict[str, Any]) -> None:
    bundle = open_checkpoint(parity / "formats" / "checkpoints" / "damaged")
    with pytest.raises(UserError, match=r"variable 'net/conv/kernel'.*checksum"):
        bundle.read("net/conv/kernel")
    for name in bundle.names():
        if name != "net/conv/kernel":
            bundle.read(name)


def test_old_single_file_format_is_named(parity: Path) -> None:
    folder = parity / "formats" / "checkpoints" / "v1_format"
    for path in (folder, folder / "model.ckpt"):
        assert is_checkpoint(path) is (path != folder)
        with pytest.raises(UserError, match=r"format V1.*\n.*Saver"):
            open_checkpoint(path)


def test_checkpoint_without_data_files_still_lists_its_variables(shared: Path) -> None:
    bundle = open_checkpoint(shared / "data" / "pretrained" / "videnn-names")
    assert len(bundle.names()) == 275
    assert bundle.entry("block1/conv2d/kernel").shape == (3, 3, 3, 128)
    with pytest.raises(UserError, match=r"data-00000-of-00001: the data file with .* is missing"):
        bundle.read("block1/conv2d/kernel")


def test_saved_model_is_opened_by_its_folder(shared: Path, tmp_path: Path) -> None:
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
def test_checkpoint_is_found_by_any_of_its_names(model: Path, name: str) -> None:
    path = model.parent / name
    assert is_checkpoint(path)
    assert open_checkpoint(path).names() == ["a/kernel", "b", "text"]


def test_moved_folder_is_found_even_if_its_checkpoint_file_names_the_old_one(model: Path) -> None:
    old = "/there/before/\\303\\244/model.ckpt-7"
    (model.parent / "checkpoint").write_text(f'model_checkpoint_path: "{old}"\n')
    assert open_checkpoint(model.parent).prefix == model


def test_folder_with_one_index_needs_no_checkpoint_file(model: Path) -> None:
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
        ("checkpoint", b"nothing", "contains no model_checkpoint_path"),
        ("checkpoint", b'model_checkpoint_path: "gone"', "names 'gone'"),
        ("checkpoint", b'model_checkpoint_path: ".."', "names '..'"),
        ("checkpoint", b'model_checkpoint_path: "' + b"x" * 5000 + b'"', "File name too long"),
        ("some.pb", b"xyz", "is not a TensorFlow checkpoint"),
        ("empty.index", b"", "does not end like an index"),
    ],
)
def test_non_checkpoints_are_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        open_checkpoint(tmp_path / name)


def test_unknown_variable_suggests_the_nearest(model: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'a/kernel'"):
        open_checkpoint(model).read("a/kernal")


def test_truncated_data_file_is_named(model: Path) -> None:
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
        pytest.param(
            [(b"v", entry(offset=-1))],
            "position in the data",
            id="a negative offset",
        ),
        pytest.param(
            [(b"v", entry(shape=(2**40,), size=2**42))], "data file is too short", id="a shape"
        ),
        pytest.param([(b"v", entry(shape=(2**40, 2**40)))], "fit into memory", id="a larger shape"),
        pytest.param([(b"v", entry(shape=(-1,)))], "negative or unknown", id="a negative axis"),
        pytest.param([(b"v", entry(shape=(1,) * 99))], "axes", id="99 axes"),
        pytest.param([(b"v", entry(kind=20))], "element type 20", id="an element type"),
        pytest.param([(b"v", entry(shard=7))], "data file 7, but there are only 1", id="a shard"),
        pytest.param([(b"v", entry(kind=7, shape=(2**40,)))], "but only 8 bytes", id="strings"),
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
            "ends at 2 on an axis of size 1",
            id="a part outside",
        ),
        pytest.param(
            [(SLICED, entry(kind=9)), (b"v", entry(size=0) + part((0, 2)))],
            "one of its parts is int64 2, but should be float32 2",
            id="a part of another type",
        ),
        pytest.param(
            [(b"v", entry(size=0) + part((0, 2), (0, 2)))],
            "one of its parts is not 1",
            id="part's axes",
        ),
        pytest.param(
            [(b"v", entry(size=0) + part((-1, 2)))], "before the array", id="a part before"
        ),
    ],
)
def test_hostile_numbers_are_refused_by_name_without_allocation(
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
        (lambda data: build_table([(b"", b""), (b"b", entry()), (b"a", entry())]), "not sorted"),
        (lambda data: build_table([(b"", b""), (b"b", entry()), (b"b", entry())]), "not sorted"),
    ],
)
def test_damaged_index_is_refused(model: Path, change: Any, message: str) -> None:
    index = model.with_name(f"{model.name}.index")
    index.write_bytes(change(index.read_bytes()))
    with pytest.raises(UserError, match=message) as caught:
        open_checkpoint(model)
    assert str(index) in str(caught.value)


def test_names_cannot_control_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(indexed((b"a\x1b[2J", entry()), (b"b\xff", entry(size=0))))
    assert open_checkpoint(tmp_path / "m").names() == ["a\\x1b[2J", "b\\xff"]


def test_compressed_index_is_named_as_such() -> None:
    data = bytearray(indexed((b"v", entry())))
    end = data.index(b"\0" * 4 + b"\1\0\0\0\0") + 8
    data[end] = 1
    data[end + 1 : end + 5] = masked_crc(bytes(data[: end + 1])).to_bytes(4, "little")
    with pytest.raises(UserError, match="Snappy"):
        TensorBundle(Path("m"), bytes(data))


def test_names_expanding_from_a_small_file_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_any_damage_is_a_readable_user_error(
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
def test_slice_keys_sort_like_their_numbers(starts: list[int]) -> None:
    keys = [slice_key(b"v", (Extent(start, 1),)) for start in starts]
    assert [starts[i] for i in sorted(range(len(keys)), key=keys.__getitem__)] == sorted(starts)


@given(st.lists(st.binary(max_size=6), min_size=2, max_size=20, unique=True))
def test_slice_keys_sort_like_their_names(names: list[bytes]) -> None:
    keys = {slice_key(name, (Extent(),)): name for name in names}
    assert len(keys) == len(names)
    assert [keys[key] for key in sorted(keys)] == sorted(names)


TWO_FILES = b"\x08\x02"
"""A header that names two data files."""
AGAIN = "\n  The checkpoint is damaged: copy or download its files again."


def hand_made(
    folder: Path, *entries: tuple[bytes, bytes], header: bytes = TWO_FILES, sizes: Any = (64, 64)
) -> TensorBundle:
    """A checkpoint of such entries whose data files count their bytes."""
    (folder / "m.index").write_bytes(build_table([(b"", header), *sorted(entries)]))
    for place, size in enumerate(sizes):
        path = folder / f"m.data-{place:05d}-of-00002"
        path.write_bytes(bytes(range(64 * place, 64 * place + size)))
    return open_checkpoint(folder / "m")


def summed(data: bytes) -> bytes:
    return b"\x35" + masked_crc(data).to_bytes(4, "little")


def test_each_value_is_read_at_its_offset_in_its_file(tmp_path: Path) -> None:
    bundle = hand_made(
        tmp_path,
        (b"a", entry(kind=4, size=2, offset=0) + summed(bytes((0, 1)))),
        (b"b", entry(kind=4, size=2, offset=2) + summed(bytes((2, 3)))),
        (b"c", entry(kind=4, size=2, shard=1, offset=1) + summed(bytes((65, 66)))),
        (
            b"d",
            entry(kind=5, shape=(2, 2), shard=1, offset=3, size=8) + summed(bytes(range(67, 75))),
        ),
        (b"e", entry(kind=4, shape=(0, 3), size=0, offset=9) + summed(b"")),
        (b"f", entry(kind=4, size=2, shard=1, offset=62) + summed(bytes((126, 127)))),
    )
    assert {name: bundle.read(name).tolist() for name in "abcf"} == {
        "a": [0, 1],
        "b": [2, 3],
        "c": [65, 66],
        "f": [126, 127],
    }
    whole = np.frombuffer(bytes(range(67, 75)), "<i2").reshape(2, 2)
    np.testing.assert_array_equal(bundle.read("d"), whole)
    assert bundle.read("d").flags.aligned
    assert bundle.read("e").shape == (0, 3)
    assert bundle.entry("d").dtype == "int16"
    bundle.check_data()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [(b"v", entry(size=9))],
            "{m}, variable 'v': cannot be read: it has 9 bytes, but float32 2 needs 8{again}",
        ),
        (
            [(b"v", entry(offset=57))],
            "{m}, variable 'v': cannot be read: its data file is too short: 64 bytes, but the "
            "variable ends at byte 65{again}",
        ),
        (
            [(b"v", entry(offset=56))],
            "{m}, variable 'v': cannot be read: the checksum of its data does not match{again}",
        ),
        (
            [(b"v", entry(shard=2))],
            "{m}, variable 'v': cannot be read: it is in data file 2, but there are only 2{again}",
        ),
        (
            [(b"v", entry(kind=7, shape=(9,), size=8))],
            "{m}, variable 'v': cannot be read: it has 9 strings, but only 8 bytes{again}",
        ),
        (
            [(b"v", entry(kind=7, shape=(1,), size=8, offset=9))],
            "{m}, variable 'v': cannot be read: it has a string of 9 bytes, but only 8 bytes"
            "{again}",
        ),
        (
            [(b"v", entry(kind=7, shape=(1,), size=8, offset=8))],
            "{m}, variable 'v': cannot be read: the checksum of its strings' lengths does not match"
            "{again}",
        ),
        (
            [(SLICED, entry()), (b"v", entry(shape=(3,), size=0) + part((0, 2)))],
            "{m}, variable 'v': cannot be read: its parts do not cover 3 exactly once{again}",
        ),
        (
            [(SLICED, entry(shape=(3,))), (b"v", entry(size=0) + part((0, 2)))],
            "{m}, variable 'v': cannot be read: one of its parts is float32 3, but should be "
            "float32 2{again}",
        ),
        (
            [(b"v", entry(size=0) + part((0, 2)))],
            "{m}, variable 'v': cannot be read: one of its parts is missing{again}",
        ),
        (
            # The first of these has no bytes, and none of the others is passed over for that.
            [(b"t", entry(size=0)), (b"u", entry()), (b"v", entry(offset=7))],
            "{m}.index: cannot be read: 'u' and 'v' share bytes of the data file{again}",
        ),
        (
            [(b"a\xff", entry(size=0)), (b"a\\xff", entry(size=0))],
            "{m}.index: cannot be read: two variables have the same name{again}",
        ),
        (
            [(b"v\x01", entry(kind=20))],
            "{m}.index: cannot be read: variable 'v\\x01': the element type 20 is not "
            "supported{again}",
        ),
        ([(b"w", entry())], "{m}.index: there is no variable 'v'"),
        (
            [(b"values", entry(size=0)), (b"vv", entry(size=0))],
            "{m}.index: there is no variable 'v'\n  Did you mean 'vv'?",
        ),
    ],
)
def test_damage_has_the_full_message(
    tmp_path: Path, entries: list[tuple[bytes, bytes]], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        hand_made(tmp_path, *entries).read("v")
    assert str(caught.value) == message.format(m=tmp_path / "m", again=AGAIN)


def test_data_files_are_checked_by_their_last_variable_without_being_read(tmp_path: Path) -> None:
    entries = [(b"a", entry(offset=8)), (b"b", entry(offset=40, size=24)), (b"z", entry(size=0))]
    entries += [(b"c", entry(shard=1, offset=50)), (SLICED, entry(shard=1, offset=58, size=3))]
    hand_made(tmp_path, *entries, sizes=(64, 61)).check_data()
    for sizes, (name, held, end) in {
        (63, 61): ("b", 63, 64),
        (64, 60): ("a part of a variable", 60, 61),
        (0, 61): ("b", 0, 64),
    }.items():
        with pytest.raises(UserError) as caught:
            hand_made(tmp_path, *entries, sizes=sizes).check_data()
        number = int(held == 60)
        assert str(caught.value) == (
            f"{tmp_path}/m.data-0000{number}-of-00002: is truncated: it has {held} bytes, but "
            f"'{name}' ends at byte {end}{AGAIN}"
        )
    (tmp_path / "m.data-00001-of-00002").unlink()
    with pytest.raises(UserError) as caught:
        hand_made(tmp_path, *entries, sizes=(64,)).check_data()
    assert str(caught.value) == (
        f"{tmp_path}/m.data-00001-of-00002: the data file with the variable 'a part of a "
        "variable' is missing\n  Copy all files that begin with m."
    )
    with pytest.raises(UserError) as caught:
        hand_made(tmp_path, (b"v", entry(shard=2))).check_data()
    assert str(caught.value) == (
        f"{tmp_path}/m.index: cannot be read: v: it is in data file 2, but there are only 2{AGAIN}"
    )


def test_large_numbers_of_a_truncated_file_are_written_with_commas(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", {"a": np.zeros(1000, np.float32)})
    path = tmp_path / "m.data-00000-of-00001"
    open_checkpoint(tmp_path).check_data()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"it has 3,999 bytes, but 'a' ends at byte 4,000"):
        open_checkpoint(tmp_path).check_data()


def test_strings_with_trailing_bytes_are_refused(tmp_path: Path) -> None:
    texts = np.array([[b"abc", b"", b"z" * 300]], dtype=object)
    write_bundle(tmp_path / "m", {"s": texts})
    assert open_checkpoint(tmp_path).read("s").tolist() == texts.tolist()
    path = tmp_path / "m.data-00000-of-00001"
    whole = path.read_bytes()
    # Lengths as varints, their checksum, and the strings, in this order.
    assert whole[:4] == b"\x03\x00\xac\x02"
    assert whole[8:] == b"abc" + b"z" * 300
    path.write_bytes(whole[:-1] + b"y")
    with pytest.raises(UserError, match="the checksum of its strings does not match"):
        open_checkpoint(tmp_path).read("s")


def test_index_longer_than_an_eighth_of_a_gibibyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.index"
    for size, message in (
        (134_217_728, "does not end like an index"),
        (134_217_729, "is too large for the index of a checkpoint"),
    ):
        with path.open("wb") as file:
            file.truncate(size)
        with pytest.raises(UserError, match=message) as caught:
            open_checkpoint(path)
        assert caught.value.where == str(path)
