"""Files of PyTorch's own are refused by what is in them, not by their name."""

import zipfile
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.weights.tensor_files import open_tensors
from jumar.weights.torch_files import check_no_torch_file


@pytest.mark.parametrize("name", ["w.pth", "w.ckpt", "w.bin", "w.safetensors", "w.pb"])
def test_torch_save_file_is_refused_under_any_name(tmp_path: Path, name: str) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / name)
    with pytest.raises(UserError, match=r"is a torch\.save file") as refused:
        open_tensors(tmp_path / name)
    assert refused.value.where == str(tmp_path / name)


@pytest.mark.parametrize(
    ("members", "is_torch_s"),
    [
        (["a/data/0", "a/version", "a/data.pkl"], True),
        (["data.pkl"], True),
        (["a/olddata.pkl", "a/data.pkl.txt", "data.pkl/b"], False),
        ([], False),
    ],
)
def test_zip_is_torchs_if_it_has_torchs_pickle(
    tmp_path: Path, members: list[str], is_torch_s: bool
) -> None:
    path = tmp_path / "any.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in members:
            archive.writestr(name, b"")
    if is_torch_s:
        with pytest.raises(UserError, match=r"is a torch\.save file"):
            check_no_torch_file(path)
    else:
        check_no_torch_file(path)


def test_incomplete_zip_is_not_torchs(tmp_path: Path) -> None:
    check_no_torch_file(tmp_path)
    check_no_torch_file(tmp_path / "none")
    torch.save({"a": torch.zeros(2)}, tmp_path / "w.pth")
    whole = (tmp_path / "w.pth").read_bytes()
    (tmp_path / "w.pth").write_bytes(whole[: len(whole) // 2])
    check_no_torch_file(tmp_path / "w.pth")
