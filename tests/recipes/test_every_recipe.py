"""Every recipe trains, is scored and resumes bit-identically, in every precision mode.

Each recipe runs with its own settings, made small; a recipe that is added must be added here.
"""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from jumar.recipes.registry import create_recipe, list_recipes
from jumar.settings import override
from tests.cli.in_process import here
from tests.data.text.vocabularies import PIECES
from tests.recipes.small_data import (
    write_frames,
    write_pictures,
    write_signs,
    write_texts,
    write_words,
)

WORDS = ("yes", "no", "stop")


class Case(NamedTuple):
    """A recipe made small.

    Attributes:
        data: `pictures`, `frames`, `signs`, `words`, `sentences`, `tags`, `questions`,
            `instances`, or the embedded `digits`.
        needs: A recipe whose finished run it builds on, and the field that names the run.
    """

    settings: str
    data: str = "pictures"
    needs: tuple[str, str] | None = None


_DENOISING = "model.depth=4 model.width=4 data.patch_size=16 data.patches_per_image=4"
_NLRN = "model.steps=2 model.filters=8 model.embedded=4 data.patch_size=16 data.patches_per_image=4"
_NLRN += " model.patch=16 model.stride=12"
_BERT = f"model.size=bert-tiny model.vocabulary=vocab.txt model.vocab_size={len(PIECES)}"
_BERT += " data.max_seq_length=12"
_PRETRAINING = f"model.vocabulary=vocab.txt model.vocab_size={len(PIECES)} model.hidden_size=16"
_PRETRAINING += " model.num_layers=1 model.num_heads=2 data.eval_path=instances"
_DETECTION = "model.backbone=resnet18 data.image_size=32"
_PRIOR = "model.layers=2 model.maps=8"
CASES = {
    "alexnet": Case("data.image_size=63 model.num_classes=10", data="digits"),
    "alexnet-8p": Case("data.image_size=63 model.num_classes=10", data="digits"),
    "alexnet-demo": Case("data.image_size=63", data="digits"),
    "resnext50": Case("data.image_size=32", data="digits"),
    "resnext50-1p": Case("data.image_size=32", data="digits"),
    "resnext50-8p": Case("data.image_size=32", data="digits"),
    "resnext50-256bs-8p": Case("data.image_size=32", data="digits"),
    "bert-base": Case(_PRETRAINING, data="instances"),
    "bert-large": Case(_PRETRAINING, data="instances"),
    "bert-tiny": Case(_PRETRAINING, data="instances"),
    "nezha-base": Case(_PRETRAINING, data="instances"),
    "nezha-large": Case(_PRETRAINING, data="instances"),
    "bert-classify": Case(f"{_BERT} data.labels=0,1", data="sentences"),
    "bert-ner": Case(f"{_BERT} data.labels=O,B-X,I-X", data="tags"),
    "bert-reading": Case(f"{_BERT} data.max_query_length=2 data.doc_stride=2", data="questions"),
    "biggan128": Case("model.width=8"),
    "biggan128-cats": Case("model.width=8"),
    "ds-cnn-s": Case(f"data.words={','.join(WORDS)}", data="words"),
    "ds-cnn-m": Case(f"data.words={','.join(WORDS)}", data="words"),
    "ds-cnn-l": Case(f"data.words={','.join(WORDS)}", data="words"),
    "videnn-spatial": Case(_DENOISING),
    "videnn-spatial-loss-scale": Case(_DENOISING),
    "videnn-temporal": Case(_DENOISING, data="frames", needs=("videnn-spatial", "spatial_run")),
    "psenet": Case(f"{_DETECTION} model.width=8", data="signs"),
    "psenet-small": Case(f"{_DETECTION} model.width=8", data="signs"),
    "east": Case(_DETECTION, data="signs"),
    "east-small": Case(_DETECTION, data="signs"),
    "nlrn": Case(f"{_NLRN} schedule.boundaries=1it,2it,3it,4it,5it"),
    "nlrn-small": Case(_NLRN),
    "vqvae": Case("model.codes=8 model.width=8 data.image_size=32"),
    "vqvae-cifar10": Case("model.codes=8 model.width=8 data.image_size=32"),
    "vqvae-mnist": Case("model.codes=8 model.width=8", data="digits"),
    "vqvae-prior": Case(_PRIOR, needs=("vqvae-cifar10", "vqvae.run")),
}
VARIANTS = ("alexnet", "alexnet-8p", "resnext50-1p", "resnext50-8p", "resnext50-256bs-8p")
VARIANTS += (
    "bert-large",
    "bert-tiny",
    "biggan128-cats",
    "ds-cnn-m",
    "ds-cnn-l",
    "nlrn-small",
    "psenet-small",
    "east-small",
    "vqvae",
)
"""They differ from another recipe in numbers only."""
LEADING = [name for name in CASES if name not in VARIANTS]
MODES = ("must_keep_origin_dtype", "allow_mix_precision", "allow_fp32_to_fp16", "force_fp16")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data of every kind; runs that others build on are added to it."""
    folder = tmp_path_factory.mktemp("zoo")
    write_pictures(folder / "pictures")
    write_frames(folder / "frames")
    write_words(folder / "words", (*WORDS, "cat"))
    write_signs(folder / "signs")
    write_texts(folder)
    made = ("--to", "instances", "--max-seq-length", "12", "--max-predictions-per-seq", "3")
    sources = ("documents.txt", "--vocab", "vocab.txt", "--workers", "1", "--shards", "1")
    here("data", "pretraining", *sources, *made, cwd=folder)
    return folder


def options(name: str, place: Path, *more: str) -> list[str]:
    """`--set` options that make a recipe small."""
    case = CASES[name]
    chosen = [
        *case.settings.split(),
        f"data.path={'digits' if case.data == 'digits' else place / case.data}",
        "data.batch_size=2",
        "data.eval_batch_size=64" if case.data in ("digits", "words") else "data.eval_batch_size=2",
        "data.workers=0",
        "training.log_every=1it",
        "training.evaluate_every=",
        "checkpoints.every=2it",
        "checkpoints.keep=3",
        *more,
    ]
    if case.needs is not None:
        needed, field = case.needs
        if not (place / needed).exists():
            train(needed, place / needed, place)
        chosen.append(f"{field}={place / needed}")
    return [text for setting in chosen for text in ("--set", setting)]


def train(name: str, run: Path, place: Path, *more: str, steps: int = 4) -> str:
    """Train a small one; returns what was printed."""
    duration = f"training.duration={steps}it"
    fields = options(name, place, duration, *more)
    return here("train", name, "--device", "cpu", "--run-dir", run, *fields, cwd=place).out


def weights(run: Path, step: int = 4) -> dict[str, torch.Tensor]:
    return load_file(run / "checkpoints" / f"step-{step:08d}" / "model.safetensors")


def test_every_recipe_has_a_test_case() -> None:
    ours = {row.name for row in list_recipes() if row.module.startswith("jumar.")}
    assert ours == set(CASES)


@pytest.mark.parametrize("name", LEADING)
def test_run_killed_after_two_steps_resumes_to_equal_an_uninterrupted_one(
    name: str, place: Path, tmp_path: Path
) -> None:
    printed = train(name, tmp_path / "whole", place)
    assert printed.startswith("device: cpu")
    assert "Step   Epoch   Speed   Loss   FinLoss   LR" in printed
    killed = tmp_path / "parts"
    shutil.copytree(tmp_path / "whole", killed)
    shutil.rmtree(killed / "checkpoints" / "step-00000004")
    (killed / "results.json").unlink()
    train(name, killed, place)
    whole, parts = weights(tmp_path / "whole"), weights(killed)
    for key, value in whole.items():
        assert torch.equal(parts[key], value), key
    results = json.loads((tmp_path / "whole" / "results.json").read_text())
    assert results["state"] == "finished"
    assert results["headline"]["name"] in results["metrics"]
    here("evaluate", tmp_path / "whole", "--device", "cpu", cwd=tmp_path)
    here("report", tmp_path / "whole", cwd=tmp_path)
    assert "<html" in (tmp_path / "whole" / "report.html").read_text()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LEADING)
def test_every_precision_mode_can_take_a_step(name: str, mode: str, place: Path) -> None:
    run = place / "never-written"
    chosen = options(name, place, f"precision.mode={mode}", "training.duration=4it")
    arguments = ("train", name, "--device", "cpu", "--dry-run", "--run-dir", run, *chosen)
    done = here(*arguments, cwd=place)
    assert f"precision: {mode}" in done.out.splitlines()[0]
    assert not run.exists()


@pytest.mark.parametrize("name", LEADING)
def test_network_built_without_data_has_the_trained_weights(name: str, place: Path) -> None:
    if not (place / name).exists():
        train(name, place / name, place, steps=2)
    step = max(int(path.name[5:]) for path in (place / name / "checkpoints").iterdir())
    stored = weights(place / name, step)
    fields = options(name, place)[1::2]
    if CASES[name].data == "digits":
        fields += ["model.num_classes=10"] if "vqvae" not in name else []
    model = override(create_recipe(name), fields).build_model()
    shapes = {key: value.shape for key, value in model.state_dict().items()}
    assert shapes == {key: value.shape for key, value in stored.items()}
