"""Files of PyTorch's own are refused by what is in them, not by their name."""

from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.weights.tensor_files import open_tensors


@pytest.mark.parametrize("name", ["w.pth", "w.ckpt", "w.bin", "w.safetensors", "w.pb"])
def test_a_file_of_torch_save_is_refused_under_any_name(tmp_path: Path, name: str) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / name)
    with pytest.raises(UserError, match=r"is a torch\.save file") as refused:
        open_tensors(tmp_path / name)
    assert refused.value.where == str(tmp_path / name)
