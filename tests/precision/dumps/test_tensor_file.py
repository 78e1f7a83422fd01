"""Safetensors files written from memory, read by the library."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from jumar.precision.dumps.tensor_file import STORABLE, write_tensors

LONGEST_BLOCK = 1 << 20


@pytest.mark.parametrize("dtype", STORABLE, ids=str)
def test_tensors_of_every_dtype_are_read_back_by_the_library(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    tensors = {
        "odd": torch.ones(3, dtype=torch.bool),
        "matrix": torch.arange(6).reshape(2, 3).to(dtype),
        "number": torch.tensor(1).to(dtype),
        "empty": torch.zeros(0, 4).to(dtype),
        "turned": torch.arange(6).reshape(2, 3).to(dtype).t(),
    }
    write_tensors(tmp_path / "file", tensors, {"said": "é"})
    read = load_file(tmp_path / "file")
    assert set(read) == set(tensors)
    for name, value in tensors.items():
        assert read[name].dtype == value.dtype
        assert torch.equal(read[name].float(), value.float())
        assert read[name].shape == value.shape
    with safe_open(tmp_path / "file", framework="pt") as file:
        assert file.metadata() == {"said": "é"}


def test_every_byte_is_passed_on_in_blocks(tmp_path: Path) -> None:
    seen: list[bytes] = []
    tensors = {"a": torch.randn(700_001), "b": torch.randn(3)}
    write_tensors(tmp_path / "file", tensors, on_block=seen.append, flushed=True)
    assert b"".join(seen) == (tmp_path / "file").read_bytes()
    assert max(map(len, seen)) <= LONGEST_BLOCK
    assert torch.equal(load_file(tmp_path / "file")["a"], tensors["a"])


def test_small_pieces_reach_the_disk_before_the_next(tmp_path: Path) -> None:
    """A buffer would report a full disk only when the file is closed."""
    sizes: list[int] = []
    tensors = {"a": torch.zeros(3), "b": torch.zeros(5)}
    write_tensors(
        tmp_path / "file",
        tensors,
        on_block=lambda _: sizes.append((tmp_path / "file").stat().st_size),
    )
    whole = (tmp_path / "file").stat().st_size
    assert sizes == [0, whole - 32, whole - 20]


def test_file_can_be_overwritten_with_its_own_tensors(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", {"a": torch.arange(1000.0)})
    mapped = load_file(tmp_path / "file")
    mapped["b"] = torch.ones(3)
    write_tensors(tmp_path / "file", mapped)
    read = load_file(tmp_path / "file")
    assert torch.equal(read["a"], torch.arange(1000.0))
    assert torch.equal(read["b"], torch.ones(3))
