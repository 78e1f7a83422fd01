from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from jumar.ground.errors import UserError
from jumar.training.checkpoint import load_weights, write_checkpoint
from jumar.training.checkpoint_state import SavedState
from jumar.training.name_patterns import matches
from jumar.training.settings import TransferSettings
from jumar.training.transfer import (
    Transferred,
    _renamed,
    load_matching,
    transfer_weights,
    weights_path,
)


def net(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, classes))


def saved(model: nn.Module, path: Path, **more: torch.Tensor) -> Path:
    save_file({**model.state_dict(), **more}, path)
    return path


def test_different_class_count_skips_the_last_layer_and_says_so(tmp_path: Path) -> None:
    old, new = net(5), net(2)
    kept = new[1].weight.detach().clone()
    file = saved(old, tmp_path / "w.safetensors", extra=torch.zeros(1))
    result = transfer_weights(new, TransferSettings(start_from=str(file)))
    assert torch.equal(new[0].weight, old[0].weight)
    assert torch.equal(new[1].weight, kept)
    assert result.loaded == ["0.bias", "0.weight"]
    assert result.wrong_shape == ["1.bias 5 instead of 2", "1.weight 5x4 instead of 2x4"]
    assert result.unknown == ["extra"]
    assert set(result.initialised) == {"1.weight", "1.bias"}


def test_restore_exclude_matches_name_prefix_or_pattern(tmp_path: Path) -> None:
    file = saved(net(2), tmp_path / "w.safetensors")
    result = transfer_weights(
        net(2), TransferSettings(start_from=str(file), restore_exclude=("1",))
    )
    assert set(result.left_out) == {"1.weight", "1.bias"}
    assert matches("a.b.weight", "a.*.weight")
    assert not matches("ab.weight", "a")


def test_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    file = saved(net(2), tmp_path / "w.safetensors")
    with pytest.raises(UserError, match="'dense' matches no weight"):
        transfer_weights(net(2), TransferSettings(start_from=str(file), restore_exclude=("dense",)))


def test_file_without_any_matching_weight_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    save_file({"other": torch.zeros(2)}, file)
    with pytest.raises(UserError, match="no weight"):
        transfer_weights(net(2), TransferSettings(start_from=str(file)))


def test_torch_save_file_is_refused_with_how_to_convert_it(tmp_path: Path) -> None:
    file = tmp_path / "w.pth"
    torch.save(net(2).state_dict(), file)
    with pytest.raises(UserError, match=r"torch\.save") as refused:
        transfer_weights(net(2), TransferSettings(start_from=str(file)))
    assert "save_file(torch.load('FILE', weights_only=True)" in refused.value.todo


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no such file or folder: .*nothing"):
        transfer_weights(net(2), TransferSettings(start_from=str(tmp_path / "nothing")))


def test_report_counts_every_weight_and_names_at_most_eight() -> None:
    many = [f"w{number}" for number in range(9)]
    result = Transferred(
        source="x",
        loaded=["a", "b"],
        left_out=many,
        wrong_shape=many[:8],
        unknown=[],
        initialised=["c"],
    )
    eight = "w0, w1, w2, w3, w4, w5, w6, w7"
    assert result.lines() == [
        "weights from x: 2 loaded",
        f"  excluded by restore_exclude (9): {eight}, ...",
        f"  not loaded, wrong shape (8): {eight}",
        "  initialised (1): c",
    ]


def test_network_settings_of_the_source_weights_are_named(tmp_path: Path) -> None:
    asked: list[object] = []

    def fitting(shapes: Mapping[str, Sequence[int]], config: Mapping[str, Any]) -> Sequence[str]:
        asked.append((dict(shapes), dict(config)))
        return ["model.layers=3", "model.width=8"]

    (tmp_path / "config.json").write_text('{"heads": 2}')
    settings = TransferSettings(start_from=str(tmp_path))
    save_file({"0.weight": torch.zeros(4, 3), "0.bias": torch.zeros(4)}, saved_in(tmp_path))
    advice = "to match it: --set model.layers=3 --set model.width=8"
    lines = transfer_weights(net(2), settings, fitting).lines()
    assert lines[-1] == f"  the weights belong to a network with other settings; {advice}"
    assert asked == [({"0.weight": (4, 3), "0.bias": (4,)}, {"heads": 2})]
    save_file({"7.weight": torch.zeros(4, 3)}, saved_in(tmp_path))
    with pytest.raises(UserError) as refused:
        transfer_weights(net(2), settings, fitting)
    assert str(refused.value).endswith(
        f"\n  They belong to a network with other settings; {advice}"
    )
    save_file(net(2).state_dict(), saved_in(tmp_path))
    lines = transfer_weights(net(2), settings, lambda shapes, config: ()).lines()
    assert lines == [f"weights from {saved_in(tmp_path)}: 4 loaded"]


def test_config_next_to_differently_named_weights_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[not for us")
    file = saved(net(2), tmp_path / "w.safetensors")
    asked: list[object] = []

    def fitting(shapes: Mapping[str, Sequence[int]], config: Mapping[str, Any]) -> Sequence[str]:
        del shapes
        asked.append(config)
        return ()

    transfer_weights(net(2), TransferSettings(start_from=str(file)), fitting)
    assert asked == [{}]


def saved_in(folder: Path) -> Path:
    return folder / "model.safetensors"


def test_weights_of_a_bare_encoder_get_its_name_prefix(tmp_path: Path) -> None:
    model = nn.ModuleDict({"bert": net(2), "head": nn.Linear(2, 2)})
    bare = net(2)
    file = saved(bare, tmp_path / "w.safetensors")
    transferred = transfer_weights(model, TransferSettings(start_from=str(file)))
    assert set(transferred.loaded) == {f"bert.{name}" for name in bare.state_dict()}
    assert torch.equal(model.state_dict()["bert.0.weight"], bare[0].weight)
    # A file with a name of the model is no bare encoder.
    tensors = {**bare.state_dict(), "head.weight": torch.ones(2, 2)}
    save_file(tensors, tmp_path / "whole.safetensors")
    settings = TransferSettings(start_from=str(tmp_path / "whole.safetensors"))
    assert transfer_weights(model, settings).loaded == ["head.weight"]
    # Two parts of the model could be meant: which one is not guessed.
    twice = nn.ModuleDict({"left": net(2), "right": net(2)})
    with pytest.raises(UserError, match="no weight"):
        transfer_weights(twice, TransferSettings(start_from=str(file)))


def test_older_hugging_face_names_map_to_current_ones() -> None:
    model = nn.ModuleDict({"bert": nn.ModuleDict({"LayerNorm": nn.LayerNorm(2)})})
    model["bert"]["scale"] = nn.Linear(1, 1, bias=False)
    tensors = {
        "nezha.LayerNorm.gamma": torch.tensor([2.0, 3.0]),
        "bert.LayerNorm.beta": torch.tensor([4.0, 5.0]),
        "nezha.scale.weight": torch.tensor([[6.0]]),
        "gamma": torch.zeros(()),
    }
    result = load_matching(
        model, {_renamed(name): value for name, value in tensors.items()}, (), "x"
    )
    assert result == Transferred(
        source="x",
        loaded=["bert.LayerNorm.weight", "bert.LayerNorm.bias", "bert.scale.weight"],
        left_out=[],
        wrong_shape=[],
        unknown=["gamma"],
        initialised=[],
    )
    values = {name: value.tolist() for name, value in model.state_dict().items()}
    assert values == {
        "bert.LayerNorm.weight": [2.0, 3.0],
        "bert.LayerNorm.bias": [4.0, 5.0],
        "bert.scale.weight": [[6.0]],
    }


def test_untransferable_weights_are_refused_listing_the_available(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    names = ("a", "b", "c", "d", "e")
    file = tmp_path / "w.safetensors"
    save_file({name: torch.zeros(1) for name in names}, file)
    with pytest.raises(UserError) as refused:
        transfer_weights(model, TransferSettings(start_from=str(file)))
    assert str(refused.value) == (
        f"no weight of '{file}' matches the model\n"
        "  The file has a, b, c, ...; the model has 0.weight, 0.bias, 1.weight, ..."
    )
    settings = TransferSettings(start_from=str(file), restore_exclude=("a", "x"))
    with pytest.raises(UserError) as refused:
        transfer_weights(model, settings)
    assert str(refused.value) == (
        f"transfer.restore_exclude: restore_exclude pattern 'x' matches no weight of '{file}'\n"
        "  Examples of weight names: b, c, d, e."
    )
    scalar = {"0.weight": torch.zeros(()), "0.bias": torch.zeros(2)}
    result = load_matching(model, scalar, (), "x")
    assert result.wrong_shape == ["0.weight scalar instead of 2x2"]
    assert (result.loaded, result.initialised) == (["0.bias"], ["0.weight", "1.weight", "1.bias"])


def test_weights_are_found_in_a_run_checkpoint_file_or_hugging_face_folder(
    tmp_path: Path,
) -> None:
    for step, value in ((1, 1.0), (2, 2.0)):
        write_checkpoint(
            tmp_path / "run" / "checkpoints",
            step=step,
            epoch=0,
            model={"w": torch.tensor([value])},
            ema={"w": torch.tensor([-value])},
            state=SavedState(values={"step": step}),
            batch={},
        )
    first, second = (tmp_path / "run/checkpoints" / f"step-0000000{step}" for step in (1, 2))
    folder = tmp_path / "hub"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    save_file({"w": torch.zeros(1)}, folder / "model.safetensors")

    def path_of(place: Path, *, ema: bool = True) -> tuple[str, Path]:
        return weights_path(TransferSettings(start_from=str(place), use_ema=ema))

    assert path_of(tmp_path / "run") == (str(second), second / "ema.safetensors")
    assert path_of(tmp_path / "run", ema=False) == (str(second), second / "model.safetensors")
    assert path_of(first) == (str(first), first / "ema.safetensors")
    assert path_of(first, ema=False) == (str(first), first / "model.safetensors")
    file = second / "model.safetensors"
    assert path_of(file) == (str(file), file)
    weights = folder / "model.safetensors"
    assert path_of(folder) == (str(weights), weights)
    with pytest.raises(UserError) as refused:
        path_of(tmp_path / "none")
    assert refused.value.where == "transfer.start_from"
    sharded = tmp_path / "sharded"
    sharded.mkdir()
    (sharded / "config.json").write_text("{}")
    for number in (1, 2):
        part = sharded / f"model-0000{number}-of-00002.safetensors"
        save_file({f"{number}.weight": torch.zeros(1)}, part)
    assert path_of(sharded)[1] == sharded / "model.safetensors"
    assert set(load_weights(path_of(sharded)[1])) == {"1.weight", "2.weight"}
    graph = tmp_path / "frozen.pb"
    graph.touch()
    with pytest.raises(UserError) as refused:
        path_of(graph)
    assert str(refused.value) == (
        f"transfer.start_from: '{graph}' contains TensorFlow weights\n"
        f"  Import them first: jumar weights import RECIPE {graph} --to NAME.safetensors"
    )
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    for place in (file, second):
        with pytest.raises(UserError, match="CRC-32C"):
            path_of(place)
    assert path_of(tmp_path / "run", ema=False)[0] == str(first)
