"""The VQ-VAE recipes from training to images, on the digits."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from jumar.precision.modes import MODES
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe
from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.settings import override, to_json
from jumar.tasks.code_prior import CodePriorTask
from jumar.training.checkpoint import RECORD
from jumar.training.checkpoint_files import sealed
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.run_directory import read_json, write_json
from jumar.training.schedules import learning_rate
from jumar.training.trainer import Trainer
from tests.cli.in_process import here
from tests.training.small_tasks import trainer_for

FAST = (
    "data.workers=0",
    "training.log_every=2it",
    "training.evaluate_every=",
    "checkpoints.every=2it",
    "data.batch_size=6",
    "data.eval_batch_size=100",
)
SMALL = (*FAST, "model.codes=6", "model.width=8", "model.pull=0.25", "optimizer.learning_rate=0.01")
SMALL_PRIOR = (*FAST, "model.layers=2", "model.maps=4", "optimizer.learning_rate=0.01")


def recipe(name: str, *settings: str) -> Recipe:
    return override(create_recipe(name), settings)


def trained(name: str, path: Path, *settings: str, steps: int = 4) -> Trainer:
    """Train, and leave the run as the command line would."""
    made = recipe(name, f"training.duration={steps}it", *settings)
    torch.manual_seed(made.seed)
    trainer = trainer_for(made.build_task(lambda _: None), made.plan(name), path)
    trainer.train()
    stored = {"recipe": name, "imports": [], "settings": to_json(made)}
    (path / "recipe.json").write_text(json.dumps(stored))
    return trainer


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.state.task.model.state_dict().items()}


@pytest.fixture(scope="module")
def first_stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("first")
    trained("vqvae-mnist", path, *SMALL)
    return path


def stage(name: str, first: Path) -> tuple[str, ...]:
    return SMALL if name == "vqvae-mnist" else (*SMALL_PRIOR, f"vqvae.run={first}")


@pytest.mark.parametrize("name", ["vqvae-mnist", "vqvae-prior"])
def test_resumed_run_is_bitwise_equal_to_an_uninterrupted_one(
    name: str, first_stage: Path, tmp_path: Path
) -> None:
    settings = (*stage(name, first_stage), "training.ema_decay=0.9")
    whole = trained(name, tmp_path, *settings)
    made = recipe(name, "training.duration=4it", *settings)
    torch.manual_seed(99)
    resumed = trainer_for(made.build_task(lambda _: None), made.plan(name), tmp_path)
    resumed.resume(next(c for c in list_checkpoints(tmp_path / "checkpoints") if c.step == 2))
    resumed.train()
    for key, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[key]), key


@pytest.mark.parametrize("name", ["vqvae-mnist", "vqvae-prior"])
def test_split_batch_gives_the_same_weights_as_the_whole(
    name: str, first_stage: Path, tmp_path: Path
) -> None:
    # Adam would turn a rounding of the gradient into a whole step.
    settings = (*stage(name, first_stage), "optimizer.kind=sgd")
    if name == "vqvae-mnist":
        settings = (*settings, "model.pull=0")
    whole, parts = (
        weights(trained(name, tmp_path / micro, *settings, f"training.micro_batch_size={micro}"))
        for micro in ("0", "4")
    )
    for key, value in whole.items():
        torch.testing.assert_close(parts[key], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", [mode.name for mode in MODES])
@pytest.mark.parametrize("name", ["vqvae-mnist", "vqvae-prior"])
def test_every_precision_mode_trains(
    name: str, mode: str, first_stage: Path, tmp_path: Path
) -> None:
    settings = stage(name, first_stage)
    trainer = trained(name, tmp_path, *settings, f"precision.mode={mode}", steps=2)
    assert all(value.isfinite().all() for value in weights(trainer).values())
    assert all(value.dtype == torch.float32 for value in weights(trainer).values())


def test_vqvae_is_unchanged_while_the_prior_trains(first_stage: Path, tmp_path: Path) -> None:
    prior = trained("vqvae-prior", tmp_path, *SMALL_PRIOR, f"vqvae.run={first_stage}")
    frozen = open_trained(TrainedRequest(run_dir=first_stage))
    frozen.policy.close()
    for name, value in frozen.model.state_dict().items():
        assert torch.equal(value, weights(prior)[f"vqvae.{name}"]), name


@pytest.fixture(scope="module")
def prior_run(first_stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prior with classes whose VQ-VAE decodes each code to a different image."""
    path = tmp_path_factory.mktemp("prior") / "run"
    settings = (*SMALL_PRIOR, f"vqvae.run={first_stage}", "model.classes=10")
    trained("vqvae-prior", path, *settings, steps=2)
    (file,) = path.glob("checkpoints/*/model.safetensors")
    # After a few steps all codes still give the same grey.
    loud = {k: v * 20 if k.startswith("vqvae.") else v for k, v in load_file(file).items()}
    save_file(loud, file)
    record = read_json(file.with_name(RECORD))
    del record["files"][file.name]
    write_json(file.with_name(RECORD), sealed(record))
    return path


def drawn(folder: Path) -> list[bytes]:
    pictures = [Image.open(path) for path in sorted(folder.glob("picture-*.png"))]
    assert {(picture.size, picture.mode) for picture in pictures} == {((24, 24), "L")}
    return [picture.tobytes() for picture in pictures]


def test_images_of_a_seed_do_not_depend_on_how_many_are_drawn(
    prior_run: Path, tmp_path: Path
) -> None:
    for folder, more in (
        ("five", ["--num", "5"]),
        ("three", ["--num", "3", "--batch", "2"]),
        ("other", ["--num", "5", "--seed", "4"]),
    ):
        chosen = ["--seed", "3", *more] if "--seed" not in more else more
        done = here("generate", prior_run, "--to", folder, *chosen, cwd=tmp_path)
        if folder == "five":
            assert done.out == "5 images with the weights of step 2, seed 3: five/grid.png\n"
    five, three, other = (drawn(tmp_path / name) for name in ("five", "three", "other"))
    assert (len(five), len(other)) == (5, 5)
    assert five[:3] == three
    assert five != other
    assert {path.name for path in (tmp_path / "three").iterdir() if path.suffix != ".png"} == {
        "drawing.json"
    }


def test_prior_samples_scores_and_resumes_after_its_vqvae_is_deleted(
    first_stage: Path, tmp_path: Path
) -> None:
    shutil.copytree(first_stage, tmp_path / "first")
    settings = [*SMALL_PRIOR, "vqvae.run=first", "training.duration=2it"]
    options = [part for setting in settings for part in ("--set", setting)]
    options += ["--run-dir", "run", "--device", "cpu"]
    here("train", "vqvae-prior", *options, cwd=tmp_path)
    shutil.rmtree(tmp_path / "first")
    (tmp_path / "run").rename(tmp_path / "moved")
    here("generate", "moved", "--num", "2", "--to", "two", "--device", "cpu", cwd=tmp_path)
    assert len(drawn(tmp_path / "two")) == 2
    done = here("evaluate", "moved", "--device", "cpu", cwd=tmp_path)
    assert "bits_per_code" in done.out
    longer = ["--set", "training.duration=3it", "--device", "cpu"]
    done = here("train", "--resume", "--run-dir", "moved", *longer, cwd=tmp_path)
    assert "finished after step 3" in done.out


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--truncation", "0.7"), "--truncation: images are generated code by code"),
        (("--interpolate", "5"), "--interpolate: this network cannot interpolate"),
    ],
)
def test_prior_refuses_latent_vector_options_and_writes_nothing(
    prior_run: Path, tmp_path: Path, option: tuple[str, str], told: str
) -> None:
    done = here("generate", prior_run, "--to", "out", *option, cwd=tmp_path, code=2)
    assert told in done.message
    assert list(tmp_path.iterdir()) == []


def test_vqvae_without_a_prior_cannot_sample(first_stage: Path, tmp_path: Path) -> None:
    done = here("generate", first_stage, "--to", "out", cwd=tmp_path, code=2)
    assert "the recipe 'vqvae-mnist' does not generate images" in done.message


def test_untrained_prior_needs_about_log2_k_bits_per_code_and_shows_images(
    first_stage: Path,
) -> None:
    made = recipe("vqvae-prior", *SMALL_PRIOR, f"vqvae.run={first_stage}")
    task = made.build_task(lambda _: None)
    assert isinstance(task, CodePriorTask)
    for parameter in task.objectives[0].trained.parameters():
        nn.init.zeros_(parameter)
    assert task.eval_data is not None
    samples = task.eval_data.fetch([SampleKey(0, index) for index in range(20)]).batch
    scores = task.summarize(task.evaluate_batch(samples))
    assert scores["bits_per_code"] == pytest.approx(2.585, abs=1e-3)  # log2 of 6 codes
    assert scores["nll"] == pytest.approx(9 * 1.7918, abs=1e-2)  # 3 x 3 codes
    (shown,) = task.illustrate()
    assert shown.image.dtype == torch.uint8


def test_tensorflow_names_cover_the_whole_state(first_stage: Path) -> None:
    for made in (
        recipe("vqvae"),
        recipe("vqvae-mnist"),
        recipe("vqvae-prior", *SMALL_PRIOR, f"vqvae.run={first_stage}"),
    ):
        model = made.build_model()
        names = made.tf_names(model)
        assert {v.name for v in names.variables} == set(model.state_dict())
        assert len({v.tf_name for v in names.variables}) == len(names.variables)


def test_prior_without_data_has_its_runs_vqvae(first_stage: Path) -> None:
    model = recipe("vqvae-prior", *SMALL_PRIOR, f"vqvae.run={first_stage}").build_model()
    frozen = open_trained(TrainedRequest(run_dir=first_stage))
    frozen.policy.close()
    for name, value in frozen.model.state_dict().items():
        assert torch.equal(value, model.state_dict()[f"vqvae.{name}"]), name


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("vqvae", ("data.image_size=30",), "data.image_size=28"),
        ("vqvae-mnist", ("data.image_size=28",), "a multiple of 8 px"),
        ("vqvae-mnist", ("model.width=6",), "multiple of 4"),
        ("vqvae-prior", (), "vqvae.run=RUN"),
        ("vqvae-prior", ("vqvae.run=nowhere",), "nowhere.*\\n.*--set vqvae.run=DIRECTORY"),
    ],
)
def test_mismatches_are_reported_with_a_remedy(
    name: str, settings: tuple[str, ...], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        recipe(name, "data.path=digits", *settings).build_task(lambda _: None)


def test_run_of_another_recipe_is_not_a_vqvae(first_stage: Path, tmp_path: Path) -> None:
    settings = (*SMALL_PRIOR, f"vqvae.run={first_stage}")
    trained("vqvae-prior", tmp_path, *settings, steps=1)
    with pytest.raises(UserError, match="not a VQ-VAE"):
        recipe("vqvae-prior", f"vqvae.run={tmp_path}").build_model()


def test_hyperparameters_match_the_original() -> None:
    large = to_json(recipe("vqvae"))
    assert (large["model"]["codes"], large["model"]["width"]) == (512, 128)
    assert (large["data"]["batch_size"], large["data"]["image_size"]) == (16, 128)
    assert (large["model"]["beta"], large["model"]["pull"]) == (0.25, 0.0)
    assert large["training"]["duration"] == "50000it"
    schedule = recipe("vqvae").optimization()["reconstruction"].schedule
    rates = [
        learning_rate(schedule, 2e-4, step, steps_per_epoch=100, total_steps=50_000)
        for step in (0, 12_500, 25_000)
    ]
    assert rates == pytest.approx([2e-4, 2e-4 * 0.5**0.5, 1e-4])
    prior = to_json(recipe("vqvae-prior"))
    assert (prior["model"]["layers"], prior["model"]["maps"]) == (18, 256)
    assert (prior["training"]["clip"], prior["training"]["clip_limit"]) == ("value", 5.0)
    assert prior["optimizer"]["learning_rate"] == 4e-4
