"""Tensors are written as msprobe writes them, whatever the calls are named."""

from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.precision.dumps.dump import Role, Value
from jumar.precision.dumps.msprobe_tensors import write_tensors


class Stored:
    """Tensors by name, each of which is read once."""

    def __init__(self, **tensors: torch.Tensor) -> None:
        self.tensors = tensors

    def read(self, name: str) -> torch.Tensor:
        return self.tensors.pop(name)


def value(role: Role, name: str, tensor: str | None, shape: tuple[int, ...] = (2,)) -> Value:
    return Value(role=role, name=name, dtype="float32", shape=shape, tensor=tensor)


def loaded(path: Path) -> Any:
    return torch.load(path, weights_only=True)


def test_file_is_named_like_the_call_and_its_role(tmp_path: Path) -> None:
    tensors = Stored(**{name: torch.full((2,), float(ord(name))) for name in "abcd"})
    named = [
        ("Module.net.Linear.forward.0", [value("input", "0.1", "a"), value("output", "0", "b")]),
        ("Module.net.Linear.forward.1", [value("input", "0", "a"), value("input", "1", None)]),
        ("Module.net.Linear.parameters_grad.0", [value("gradient", "weight", "c")]),
        ("Module.net.Linear.forward.2", [value("parameter", "weight", "d")]),
    ]
    files = write_tensors(tmp_path / "t", tensors, named)
    assert files == {
        "a": "Module.net.Linear.forward.0.input.0.1.pt",
        "b": "Module.net.Linear.forward.0.output.0.pt",
        "c": "Module.net.Linear.parameters_grad.0.weight.pt",
        "d": "Module.net.Linear.forward.2.parameters.weight.pt",
    }
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == sorted(files.values())
    for name, file in files.items():
        assert loaded(tmp_path / "t" / file).tolist() == [ord(name)] * 2


def test_view_is_written_without_the_rest_of_its_storage(tmp_path: Path) -> None:
    base = torch.arange(100_000.0).reshape(2, -1)
    files = write_tensors(tmp_path, Stored(a=base[:, 1]), [("x", [value("input", "0", "a")])])
    path = tmp_path / files["a"]
    assert loaded(path).tolist() == [1.0, 50_001.0]
    assert path.stat().st_size < 5000


def test_sample_of_a_tensor_is_not_written(tmp_path: Path) -> None:
    values = [value("input", "0", "a", (10, 10))]
    assert write_tensors(tmp_path / "t", Stored(a=torch.ones(2)), [("x", values)]) == {}
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("name", ["../../up", "/etc/x", "a\x1b[2J", "\ud800", "网络" * 100, ".."])
def test_no_name_leads_out_of_the_folder_or_is_too_long(tmp_path: Path, name: str) -> None:
    tensors = Stored(a=torch.ones(2), b=torch.zeros(2))
    named = [(name, [value("input", "0", "a")]), (name, [value("input", "0", "b")])]
    files = write_tensors(tmp_path / "t", tensors, named)
    assert len(set(files.values())) == 2
    assert [*tmp_path.iterdir()] == [tmp_path / "t"]
    assert all(len(file) < 255 and file.isascii() and "/" not in file for file in files.values())
    assert loaded(tmp_path / "t" / files["b"]).tolist() == [0, 0]
