from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from jumar.ground.errors import UserError
from jumar.training.name_patterns import matches
from jumar.training.settings import TransferSettings
from jumar.training.transfer import transfer_weights


def net(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, classes))


def saved(model: nn.Module, path: Path, **more: torch.Tensor) -> Path:
    save_file({**model.state_dict(), **more}, path)
    return path


def test_another_number_of_classes_leaves_the_last_layer_out_and_says_so(tmp_path: Path) -> None:
    old, new = net(5), net(2)
    kept = new[1].weight.detach().clone()
    file = saved(old, tmp_path / "w.safetensors", extra=torch.zeros(1))
    found = transfer_weights(new, TransferSettings(start_from=str(file)))
    assert torch.equal(new[0].weight, old[0].weight)
    assert torch.equal(new[1].weight, kept)
    assert found.loaded == ["0.bias", "0.weight"]
    assert found.wrong_shape == ["1.bias 5 instead of 2", "1.weight 5x4 instead of 2x4"]
    assert found.unknown == ["extra"]
    assert set(found.initialised) == {"1.weight", "1.bias"}


def test_restore_exclude_leaves_out_by_name_prefix_or_pattern(tmp_path: Path) -> None:
    file = saved(net(2), tmp_path / "w.safetensors")
    found = transfer_weights(net(2), TransferSettings(start_from=str(file), restore_exclude=("1",)))
    assert set(found.left_out) == {"1.weight", "1.bias"}
    assert matches("a.b.weight", "a.*.weight")
    assert not matches("ab.weight", "a")


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    file = saved(net(2), tmp_path / "w.safetensors")
    with pytest.raises(UserError, match="'dense' matches no weight"):
        transfer_weights(net(2), TransferSettings(start_from=str(file), restore_exclude=("dense",)))


def test_a_file_of_which_nothing_fits_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    save_file({"other": torch.zeros(2)}, file)
    with pytest.raises(UserError, match="no weight"):
        transfer_weights(net(2), TransferSettings(start_from=str(file)))


def test_a_file_of_torch_save_is_refused_with_the_way_to_safetensors(tmp_path: Path) -> None:
    file = tmp_path / "w.pth"
    torch.save(net(2).state_dict(), file)
    with pytest.raises(UserError, match=r"torch\.save") as refused:
        transfer_weights(net(2), TransferSettings(start_from=str(file)))
    assert "save_file(torch.load('FILE', weights_only=True)" in refused.value.todo


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no such file or folder: .*nothing"):
        transfer_weights(net(2), TransferSettings(start_from=str(tmp_path / "nothing")))
