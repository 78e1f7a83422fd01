"""ViDeNN's recipes: the second stage on the first, whole clips, the contest's loss scale."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.models.videnn import SpatialCNN, ViDeNN
from jumar.recipes.registry import create_recipe
from jumar.recipes.videnn import TemporalRecipe
from jumar.runs.evaluate import EvaluateRequest, evaluate_run
from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.runs.train import TrainRequest, train_recipe
from jumar.settings import override, to_json
from jumar.training.checkpoint import load_weights
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.run_directory import RunDirectory
from tests.recipes.small_data import write_frames, write_pictures

SMALL = ("model.depth=4", "model.width=4", "data.patch_size=12", "data.batch_size=2")
SMALL += ("training.duration=2it", "data.workers=0", "data.eval_levels=25")


def train(name: str, run: Path, data: Path, *more: str) -> Path:
    assignments = (*SMALL, f"data.path={data}", *more)
    request = TrainRequest(recipe=name, assignments=assignments, run_dir=run, device="cpu")
    assert train_recipe(request) == 0
    return run


@pytest.fixture(scope="module")
def spatial_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spatial")
    write_pictures(folder / "pictures")
    return train("videnn-spatial", folder / "run", folder / "pictures")


@pytest.fixture(scope="module")
def temporal_run(spatial_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("temporal")
    write_frames(folder / "frames")
    return train("videnn-temporal", folder / "run", folder / "frames", f"spatial_run={spatial_run}")


def weights(run: Path) -> dict[str, torch.Tensor]:
    checkpoint = list_checkpoints(RunDirectory(run).checkpoints)[-1]
    return load_weights(checkpoint.model_file(ema=False))


def test_second_stage_keeps_the_first_stages_network_bitwise(
    spatial_run: Path, temporal_run: Path
) -> None:
    spatial, both = weights(spatial_run), weights(temporal_run)
    assert {f"spatial.{name}" for name in spatial} < set(both)
    for name, value in spatial.items():
        assert torch.equal(both[f"spatial.{name}"], value), name


def test_finished_second_stage_is_usable_without_the_first_run(temporal_run: Path) -> None:
    trained = open_trained(TrainedRequest(run_dir=temporal_run, device="cpu"))
    trained.policy.close()
    recipe, model = trained.recipe, trained.model
    assert isinstance(recipe, TemporalRecipe)
    frames = [torch.rand(1, 3, 13, 17) for _ in range(4)]
    with torch.no_grad():
        cleaned = list(recipe.denoise_frames(model, iter(frames)))
        assert len(cleaned) == len(frames)
        for index, result in enumerate(cleaned):
            triplet = [frames[max(index - 1, 0)], frames[index], frames[min(index + 1, 3)]]
            expected = model(torch.cat(triplet, dim=1))
            torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)
        later = list(recipe.denoise_frames(model, iter(frames[2 - recipe.frames_before() :])))
        assert torch.equal(later[recipe.frames_before()], cleaned[2])
        assert len(list(recipe.denoise_frames(model, iter(frames[:1])))) == 1
        assert not list(recipe.denoise_frames(model, iter(())))


def test_clip_is_denoised_while_being_read(temporal_run: Path) -> None:
    recipe = create_recipe("videnn-temporal")
    assert isinstance(recipe, TemporalRecipe)
    recipe = override(recipe, ["model.depth=3", "model.width=2"])
    read = 0

    def frames():  # pyright: ignore[reportUnknownParameterType]
        nonlocal read
        for _ in range(50):
            read += 1
            yield torch.rand(1, 3, 5, 5)

    cleaned = recipe.denoise_frames(recipe.build_model().eval(), frames())
    with torch.no_grad():
        for number in range(1, 10):
            next(cleaned)
            assert read == number + 1


def test_training_with_the_margin_matches_whole_frames() -> None:
    torch.manual_seed(1)
    recipe = override(create_recipe("videnn-temporal"), ["model.depth=4", "model.width=4"])
    assert isinstance(recipe, TemporalRecipe)
    model = recipe.model.create_both(channels=3, margin=4).double()
    frames = torch.rand(1, 9, 30, 30).double()
    seen: list[torch.Tensor] = []
    model.temporal.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0]))
    model.eval()(frames)
    model.train()(frames[:, :, 5:25, 5:25])
    torch.testing.assert_close(seen[1], seen[0][:, :, 9:21, 9:21])


def test_spatial_network_is_frozen_in_the_second_stage() -> None:
    model = ViDeNN(SpatialCNN(depth=3, width=2), _temporal(), margin=0).train()
    before = {name: value.clone() for name, value in model.spatial.state_dict().items()}
    model(torch.rand(1, 9, 6, 6)).sum().backward()
    assert all(parameter.grad is None for parameter in model.spatial.parameters())
    after = model.spatial.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def _temporal():  # pyright: ignore[reportUnknownParameterType]
    recipe = override(create_recipe("videnn-temporal"), ["model.depth=3", "model.width=2"])
    assert isinstance(recipe, TemporalRecipe)
    return recipe.model.create_both(channels=3, margin=0).temporal


def test_second_stage_says_what_it_needs(temporal_run: Path, tmp_path: Path) -> None:
    write_frames(tmp_path / "frames")
    recipe = override(
        create_recipe("videnn-temporal"),
        [*SMALL, f"data.path={tmp_path / 'frames'}"],
    )
    assert isinstance(recipe, TemporalRecipe)
    with pytest.raises(UserError, match="train videnn-spatial"):
        recipe.build_task(lambda _line: None)
    wrong = replace(recipe, spatial_run=str(temporal_run))
    with pytest.raises(UserError, match="run of 'videnn-temporal', not of ViDeNN's spatial"):
        wrong.build_task(lambda _line: None)


def resume(run: Path, *assignments: str) -> int:
    return train_recipe(
        TrainRequest(recipe=None, assignments=assignments, run_dir=run, resume=True, device="cpu")
    )


def test_second_stage_resumes_and_is_scored_after_the_first_is_deleted(
    spatial_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Path(shutil.copytree(spatial_run, tmp_path / "gone"))
    write_frames(tmp_path / "frames")
    run = train("videnn-temporal", tmp_path / "run", tmp_path / "frames", f"spatial_run={gone}")
    shutil.rmtree(gone)
    assert resume(run, "training.duration=3it") == 0
    assert evaluate_run(EvaluateRequest(run_dir=run, device="cpu")) == 0
    assert "       3  " in capsys.readouterr().out
    spatial, both = weights(spatial_run), weights(run)
    for name, value in spatial.items():
        assert torch.equal(both[f"spatial.{name}"], value), name
    recorded = RunDirectory(run).read_recipe()["settings"]
    assert recorded["spatial_run"] == str(gone)


def test_second_stage_without_a_copy_reports_the_missing_first_stage(
    spatial_run: Path, temporal_run: Path, tmp_path: Path
) -> None:
    """Runs of versions before, and those that were stopped before their first checkpoint."""
    run = Path(shutil.copytree(temporal_run, tmp_path / "run"))
    moved = Path(shutil.copytree(spatial_run, tmp_path / "moved"))
    RunDirectory(run).first_stage.unlink()
    with pytest.raises(UserError, match="--set spatial_run=DIRECTORY"):
        resume(run, "training.duration=3it", "spatial_run=nowhere")
    assert resume(run, "training.duration=3it", f"spatial_run={moved}") == 0
    assert RunDirectory(run).first_stage.is_file()
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(UserError, match="--set spatial_run=DIRECTORY"):
        resume(run, "training.duration=4it", "spatial_run=nowhere")


def test_mismatched_first_stage_is_reported_with_a_remedy(
    spatial_run: Path, tmp_path: Path
) -> None:
    write_frames(tmp_path / "frames")
    with pytest.raises(UserError, match=r"model.depth, model.width"):
        train(
            "videnn-temporal",
            tmp_path / "run",
            tmp_path / "frames",
            f"spatial_run={spatial_run}",
            "model.width=8",
        )


def test_loss_scale_of_the_contest_is_one_setting_away() -> None:
    scaled = create_recipe("videnn-spatial-loss-scale")
    without = override(scaled, ["precision.loss_scale=none"])
    assert without.precision == create_recipe("videnn-spatial").precision
    assert override(scaled, ["precision.loss_scale=exponential"]) == scaled
    assert to_json(scaled.precision.loss_scale) == {
        "kind": "exponential",
        "init_loss_scale": 2.0**32,
        "incr_every_n_steps": 1000,
        "decr_every_n_nan_or_inf": 2,
        "incr_ratio": 2.0,
        "decr_ratio": 0.5,
    }


def test_every_name_in_the_second_stages_checkpoint_is_known_to_tensorflow(
    temporal_run: Path,
) -> None:
    recipe = create_recipe("videnn-temporal")
    model = recipe.build_model()
    names = recipe.tf_names(model)
    stored = {name for name in model.state_dict() if not name.endswith("num_batches_tracked")}
    assert {variable.name for variable in names.variables} == stored
    assert len(names.variables) == 93 + 21
