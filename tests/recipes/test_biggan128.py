import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from jumar.ground.errors import UserError
from jumar.models.biggan import BigGan
from jumar.recipes.biggan128 import GenerationRecipe
from jumar.recipes.registry import create_recipe
from jumar.runs.generate import GenerateRequest, generate
from jumar.settings import override
from tests.cli.command_line import start
from tests.cli.in_process import here, settings

SMALL = settings(
    model__width=8,
    data__batch_size=2,
    data__eval_batch_size=2,
    data__eval_samples=2,
    training__evaluate_every="",
    training__log_every="1it",
    checkpoints__every="1it",
    checkpoints__keep=9,
    threads__intra_op=1,
)
WAYS = {
    "mixed, averaged": settings(training__ema_decay=0.9),
    "float32, in parts, contiguous": settings(
        training__micro_batch_size=1,
        training__channels_last="false",
        precision__mode="must_keep_origin_dtype",
    ),
}


def recipe(name: str = "biggan128") -> GenerationRecipe:
    made = create_recipe(name)
    assert isinstance(made, GenerationRecipe)
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps, with a checkpoint after each."""
    return trained(tmp_path_factory.mktemp("gan"), "mixed, averaged")


def trained(folder: Path, way: str) -> Path:
    length = settings(training__duration="2it")
    options = [*SMALL, *WAYS[way], *length, "--run-dir", "run", "--device", "cpu"]
    here("train", "biggan128-cats", *options, cwd=folder)
    return folder / "run"


def test_defaults_match_the_original_and_the_homework() -> None:
    made = recipe()
    rates = {
        name: (one.optimizer.learning_rate, one.optimizer.beta1, one.optimizer.beta2)
        for name, one in made.optimization().items()
    }
    assert rates == {"generator": (5e-5, 0.0, 0.9), "discriminator": (2e-4, 0.0, 0.9)}
    assert (made.model.width, made.model.latent, made.data.batch_size) == (96, 128, 64)
    assert (made.loss.kind, made.loss.n_critic, made.loss.truncation) == ("hinge", 2, 2.0)
    assert (made.training.ema_decay, made.training.ema_warm_up) == (0.9999, False)
    assert made.training.duration == f"{50 * 10000}it"
    assert made.precision.mode == "allow_mix_precision"
    assert (made.data.frame, made.data.resize, made.data.flip) == ("squeeze", "legacy", False)


def test_other_sizes_and_impossible_networks_are_refused_with_an_explanation() -> None:
    with pytest.raises(UserError, match="generates images of 128 px, not 256"):
        override(recipe(), ["data.image_size=256"])
    with pytest.raises(UserError, match="multiple of 6"):
        override(recipe(), ["model.latent=100"]).build_model()


@pytest.mark.parametrize("norms", ["true", "false"])
def test_every_weight_has_its_tensorflow_name(norms: str) -> None:
    made = override(recipe(), ["model.width=8", f"compat.discriminator_norms={norms}"])
    model = made.build_model()
    assert isinstance(model, BigGan)
    names = made.tf_names(model)
    assert names.averages == "swapped"
    state = {name for name in model.state_dict() if not name.endswith("_tracked")}
    assert {variable.name for variable in names.variables} == state


@pytest.mark.parametrize("way", WAYS)
def test_resumed_run_ends_with_bitwise_equal_weights(tmp_path: Path, run: Path, way: str) -> None:
    whole = run if way == "mixed, averaged" else trained(tmp_path, way)
    part = tmp_path / "part"
    shutil.copytree(whole, part)
    (part / "results.json").unlink()
    shutil.rmtree(part / "checkpoints" / "step-00000002")
    here("train", "--resume", "--run-dir", part, "--device", "cpu", cwd=tmp_path)
    for place in sorted((whole / "checkpoints" / "step-00000002").glob("*.safetensors")):
        again = load_file(part / "checkpoints" / "step-00000002" / place.name)
        for name, value in load_file(place).items():
            assert torch.equal(value, again[name]), f"{place.name} {name}"


def test_images_depend_only_on_their_index_and_the_seed(tmp_path: Path, run: Path) -> None:
    messages: list[str] = []
    for folder, num, batch in (("few", 2, 2), ("more", 3, 2)):
        request = GenerateRequest(
            run_dir=run, to=tmp_path / folder, num=num, seed=3, batch=batch, interpolate=2
        )
        generate(request, messages.append)
    assert "averaged weights of step 2, seed 3, truncation 2" in messages[0]
    for number in range(2):
        name = f"picture-{number:06d}.png"
        few, more = (Image.open(tmp_path / folder / name) for folder in ("few", "more"))
        assert few.size == (128, 128)
        assert few.tobytes() == more.tobytes()
    assert sorted(path.name for path in (tmp_path / "more").iterdir()) == [
        "drawing.json",
        "grid.png",
        "interpolation.png",
        *(f"picture-{number:06d}.png" for number in range(3)),
    ]
    assert Image.open(tmp_path / "more" / "interpolation.png").width == 2 * 128 + 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--num", "0"], "cannot generate 0 images"),
        (["--interpolate", "1"], "cannot interpolate"),
        (["--truncation", "0"], "cannot truncate"),
        (["--batch", "0"], "batches of 0 images"),
        (["--num", "1", "--interpolate", "5"], "but --num is 1"),
    ],
)
def test_nonsensical_numbers_are_refused_and_nothing_is_written(
    tmp_path: Path, run: Path, options: list[str], message: str
) -> None:
    done = here("generate", run, "--to", "out", *options, cwd=tmp_path, code=2)
    assert message in done.message
    assert list(tmp_path.iterdir()) == []


def test_non_empty_folder_and_run_without_generator_are_refused(tmp_path: Path, run: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    done = here("generate", run, "--to", "out", cwd=tmp_path, code=2)
    assert "already exists and is not empty" in done.message
    here("train", "small", "--import", "tests.cli.small_recipe", "--run-dir", "other", cwd=tmp_path)
    done = here("generate", "other", "--to", "new", cwd=tmp_path, code=2)
    assert "the recipe 'small' does not generate images" in done.message
    assert not (tmp_path / "new").exists()


def test_more_images_than_fit_on_the_disk_are_refused_after_the_first_ones(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["generate", run, "--batch", "2", "--device", "cpu", "--to", "out", "--num"]
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
        done = here(*command, "1000", cwd=tmp_path, code=2)
    assert "is needed for 998 more images, but only" in done.message
    assert len(list((tmp_path / "out").glob("picture-*.png"))) == 2
    here(*command, "3", "--resume", cwd=tmp_path)
    assert len(list((tmp_path / "out").glob("picture-*.png"))) == 3


def test_folder_is_removed_if_nothing_could_be_written(tmp_path: Path, run: Path) -> None:
    command = ["generate", run, "--num", "1", "--device", "cpu", "--to", "out"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        done = here(*command, cwd=tmp_path, code=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot be written: File too large" in done.message
    assert list(tmp_path.iterdir()) == []


def test_stopped_sampling_resumes_with_the_same_images(tmp_path: Path, run: Path) -> None:
    command = ["generate", run, "--seed", "3", "--batch", "1", "--device", "cpu", "--to"]
    process = start([*command, tmp_path / "out", "--num", "400"], cwd=Path.cwd())
    while process.poll() is None and not (tmp_path / "out/picture-000001.png").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "--resume" in out
    made = len(list((tmp_path / "out").glob("picture-*.png")))
    assert 2 <= made < 400
    first = tmp_path / "out/picture-000000.png"
    first.write_bytes(first.read_bytes() + b"mine")
    more = ["--num", str(made + 2)]
    assert "--resume" in here(*command, "out", *more, cwd=tmp_path, code=2).message
    other = [*more, "--resume", "--truncation", "1"]
    assert "a different manner" in here(*command, "out", *other, cwd=tmp_path, code=2).message
    here(*command, "out", *more, "--resume", cwd=tmp_path)
    here(*command, "whole", *more, cwd=tmp_path)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    result = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert result.pop(first.name) == whole.pop(first.name) + b"mine"
    assert result == whole


def test_finished_sampling_is_kept_and_a_larger_number_extends_it(
    tmp_path: Path, run: Path
) -> None:
    command = ["generate", run, "--seed", "3", "--batch", "2", "--device", "cpu", "--to"]
    here(*command, "whole", "--num", "5", cwd=tmp_path)
    here(*command, "out", "--num", "3", cwd=tmp_path)
    refused = here(*command, "out", "--num", "3", cwd=tmp_path, code=2)
    assert "It has 3 images. Give another folder, or keep them" in refused.message
    for num in ("3", "2"):
        done = here(*command, "out", "--num", num, "--resume", cwd=tmp_path)
        assert f"all {num} already exist: out" in done.out
    here(*command, "out", "--num", "5", "--resume", cwd=tmp_path)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == whole
    (tmp_path / "out" / "picture-000004.png").unlink()
    here(*command, "out", "--num", "5", "--resume", cwd=tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == whole


def test_smaller_number_does_not_complete_a_stopped_sampling(tmp_path: Path, run: Path) -> None:
    command = ["generate", run, "--seed", "3", "--batch", "2", "--device", "cpu", "--to"]
    here(*command, "whole", "--num", "6", cwd=tmp_path)
    stopped = ["--num", "1000000000000"]  # ends after its first batch, which a full disk does too
    here(*command, "out", *stopped, cwd=tmp_path, code=2)
    here(*command, "out", "--num", "1", "--resume", cwd=tmp_path)
    here(*command, "out", "--num", "6", "--resume", cwd=tmp_path)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == whole


def test_interpolations_between_requested_images_can_be_added_later(
    tmp_path: Path, run: Path
) -> None:
    command = ["generate", run, "--device", "cpu", "--to", "out"]
    for num, lines in (("3", 1), ("4", 2), ("20", 8)):
        here(*command, "--num", num, "--interpolate", "2", "--resume", cwd=tmp_path)
        strip = Image.open(tmp_path / "out" / "interpolation.png")
        assert strip.height == lines * 128 + (lines - 1) * 2
