"""Every kind of weights file behind one interface: names, shapes, element types, values."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jumar.ground.errors import UserError
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.frozen_graph import FrozenConstants
from jumar.weights.tensor_bundle import TensorBundle
from jumar.weights.tensor_files import SafetensorsFile, open_tensorflow, open_tensors
from jumar.weights.tensor_types import TensorEntry
from jumar.weights.torch_files import check_no_torch_file
from tests.weights.test_frozen_graph import node, number, shape

KINDS = {
    "float64": torch.float64,
    "float32": torch.float32,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    tensors = {name: torch.ones(2, 3).to(kind) for name, kind in KINDS.items()}
    save_file({**tensors, "scalar": torch.tensor(7.5)}, tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def test_safetensors_use_tensorflows_element_types(weights: Path) -> None:
    opened = open_tensors(weights)
    assert isinstance(opened, SafetensorsFile)
    assert sorted(opened.names()) == sorted([*KINDS, "scalar"])
    for name in KINDS:
        assert opened.entry(name) == TensorEntry(name=name, shape=(2, 3), dtype=name)
    assert opened.entry("scalar") == TensorEntry(name="scalar", shape=(), dtype="float32")


def test_safetensors_are_read_and_bfloat16_becomes_float32(weights: Path) -> None:
    opened = open_tensors(weights)
    expected = {"bfloat16": "float32", "half": "float16"}
    for name in set(KINDS) - {"float8_e4m3", "float8_e5m2"}:
        values = opened.read(name)
        assert (values.dtype.name, values.tolist()) == (expected.get(name, name), [[1] * 3] * 2)
    assert opened.read("scalar") == 7.5


def test_suffix_determines_the_kind_and_a_folder_is_a_checkpoint(
    weights: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "g.pb"
    graph.write_bytes(node("c", number(1, 1) + shape()))
    assert isinstance(open_tensors(graph), FrozenConstants)
    assert isinstance(open_tensorflow(graph), FrozenConstants)
    for name in ("folder.pb", "folder.safetensors", "folder"):
        write_bundle(tmp_path / name / "m", {"a": np.float32(1)})
        for opener in (open_tensors, open_tensorflow):
            opened = opener(tmp_path / name)
            assert isinstance(opened, TensorBundle)
            assert opened.names() == ["a"]
    with pytest.raises(UserError) as caught:
        open_tensorflow(weights)
    assert str(caught.value) == (
        f"{weights}: contains weights written by jumar, not by TensorFlow\n"
        "  It needs no import: train with --set transfer.start_from=FILE."
    )


def test_unopenable_files_are_reported_by_kind(tmp_path: Path) -> None:
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\xff" * 20)
    with pytest.raises(UserError, match=r"cannot be read as safetensors: .*[Hh]eader") as caught:
        open_tensors(broken)
    assert caught.value.where == str(broken)
    messages = {
        (open_tensors, "none.safetensors"): "there is no such file",
        (open_tensors, "none.pb"): "there is no such file",
        (open_tensors, "none"): "there is no such checkpoint",
        (open_tensorflow, "none.safetensors"): "there is no such checkpoint",
    }
    for (opener, name), message in messages.items():
        with pytest.raises(UserError) as missed:
            opener(tmp_path / name)
        assert (missed.value.what, missed.value.where) == (message, str(tmp_path / name))


def test_torch_save_file_is_reported_with_how_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save({"a": torch.zeros(2)}, path)
    for opener in (open_tensors, open_tensorflow, check_no_torch_file):
        with pytest.raises(UserError) as caught:
            opener(path)
        assert str(caught.value) == (
            f"{path}: is a torch.save file, and loading it could execute code\n"
            "  Convert it to a dictionary of tensors yourself: "
            "`from safetensors.torch import save_file; "
            "save_file(torch.load('FILE', weights_only=True), 'NAME.safetensors')`."
        )
