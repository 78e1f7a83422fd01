"""Tensors of a dump: the file of each, and the error if the file is another one."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Value
from jumar.precision.dumps.shards import SHARD_BYTES, Shards, View, write_shards


def names(folder: Path, sizes: dict[str, int]) -> list[list[str]]:
    return [sorted(load_file(folder / name)) for name in sizes]


def test_file_is_full_if_the_next_tensor_does_not_fit(tmp_path: Path) -> None:
    tensors = {
        str(count): torch.zeros(count, dtype=torch.uint8) for count in (40, 60, 1, 99, 500, 2)
    }
    sizes = write_shards(tmp_path, tensors, 100)
    assert list(sizes) == [f"tensors-{at:05d}-of-00004.safetensors" for at in (1, 2, 3, 4)]
    assert names(tmp_path, sizes) == [["40", "60"], ["1", "99"], ["500"], ["2"]]
    assert sizes == {name: (tmp_path / name).stat().st_size for name in sizes}
    assert write_shards(tmp_path, {}, 100) == {}
    assert SHARD_BYTES == 2**30


def call(**dtypes: str) -> Sequence[Call]:
    values = tuple(
        Value(role="input", name="0", dtype=dtype, shape=(6,), tensor=name)
        for name, dtype in dtypes.items()
    )
    return (Call(kind="op", op="x", layer="", number=0, phase="forward", values=values),)


def test_view_is_sliced_from_its_base(tmp_path: Path) -> None:
    sizes = write_shards(tmp_path, {"base": torch.arange(6.0)}, 100)
    views = {"turned": View("base", (3, 2), (1, 3)), "large": View("base", (7,), (1,))}
    shards = Shards(tmp_path, sizes, views, call(turned="float32", base="float32"))
    assert shards.read("turned").tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert shards.read("base").tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    (name,) = sizes
    with pytest.raises(UserError) as error:
        shards.read("large")
    assert (error.value.what, error.value.where, error.value.todo) == (
        "the tensor 'large' in the file is not the dumped one: float32 [6]",
        str(tmp_path / name),
        "Dump that step again; other steps in the folder are not affected.",
    )
    with pytest.raises(UserError) as error:
        shards.read("none")
    assert (error.value.what, error.value.where) == ("the tensor 'none' is missing", str(tmp_path))


def test_tensor_with_another_dtype_is_distinct(tmp_path: Path) -> None:
    sizes = write_shards(tmp_path, {"a": torch.arange(6), "b": torch.arange(6)}, 100)
    shards = Shards(tmp_path, sizes, {}, call(a="int32"))
    with pytest.raises(UserError, match=r"'a' in the file is not the dumped one: int64 \[6\]"):
        shards.read("a")
    assert shards.read("b").tolist() == [0, 1, 2, 3, 4, 5]  # no call says what it is


def test_truncated_oversized_missing_or_foreign_files_are_named(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1000)}, tmp_path / "file")
    size = (tmp_path / "file").stat().st_size
    for wrong in (size - 1, size + 1):
        with pytest.raises(UserError) as error:
            Shards(tmp_path, {"file": wrong}, {}, ()).read("a")
        assert error.value.what == f"has {size:,} bytes instead of {wrong:,}"
        assert error.value.where == str(tmp_path / "file")
    assert Shards(tmp_path, {"file": size}, {}, ()).read("a").numel() == 1000
    with pytest.raises(UserError, match="there is no such file of tensors"):
        Shards(tmp_path, {"other": 5}, {}, ()).read("a")
    (tmp_path / "odd").write_bytes(b"x" * 50)
    with pytest.raises(UserError):
        Shards(tmp_path, {"odd": 50}, {}, ()).read("a")
