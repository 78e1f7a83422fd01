"""A training run goes from each original's own script to jumar and back to the script.

The originals are not part of this project: JUMAR_ORIGINALS names a folder with clones of

    ML-KWS-for-MCU       https://github.com/ARM-software/ML-KWS-for-MCU
    ViDeNN               https://github.com/clausmichele/ViDeNN
    NLRN                 https://github.com/Ding-Liu/NLRN
    BigGAN-Tensorflow    https://github.com/taki0112/BigGAN-Tensorflow
    ModelZoo-TensorFlow  https://gitee.com/ascend/ModelZoo-TensorFlow

and JUMAR_TF115_PYTHON a Python with TensorFlow 1.15.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from jumar.models.tf_layout import adam_state
from jumar.recipes.registry import create_recipe
from jumar.runs.weights_exchange import network_of
from jumar.settings import override
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.weights.tensor_bundle import TensorBundle, open_checkpoint
from tests.cli.in_process import here
from tests.recipes.small_data import write_pictures, write_words
from tests.tensorflow115 import tensorflow_python

VARIABLE = "JUMAR_ORIGINALS"
SIDE = Path(__file__).with_name("original_training.py")
ASCEND = "ModelZoo-TensorFlow/TensorFlow/built-in/cv/image_classification"


@dataclass(frozen=True, kw_only=True)
class Original:
    """An original whose own code trains.

    Attributes:
        name: What `original_training.py` calls it.
        folder: Of its code.
        saved: Where it saves.
        exported: What it wants its files to be called after so many updates.
        updates: After which the checkpoint changes sides, and at the end.
        settings: With which the recipe is the same network on small data.
        counts: What an update adds to its `global_step`; 0: it has none.
    """

    name: str
    folder: str
    exported: str
    updates: tuple[int, int, int] = (2, 4, 6)
    settings: Sequence[str] = ()
    saved: str = "saved"
    counts: int = 1


WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "bed", "cat")
PICTURES = ("data.path=pictures", "data.batch_size=2", "data.workers=0")
ORIGINALS = {
    "ds-cnn-s": Original(
        name="ds-cnn",
        folder="ML-KWS-for-MCU",
        saved="saved/best",
        exported="ds_cnn_1.ckpt-10",
        updates=(5, 10, 15),
        settings=("data.path=clips", "data.batch_size=20"),
        counts=2,
    ),
    "videnn-spatial": Original(
        name="videnn",
        folder="ViDeNN/Spatial-CNN",
        exported="Spatial-CNN-10",
        updates=(5, 10, 15),
        settings=PICTURES,
        counts=0,
    ),
    "nlrn": Original(
        name="nlrn",
        folder="NLRN",
        exported="model.ckpt-2",
        updates=(1, 2, 3),
        # The original's, which the recipe gives as parts of a run.
        settings=(
            *PICTURES,
            "schedule.boundaries=100000it,200000it,300000it,400000it,450000it",
        ),
    ),
    "biggan128": Original(
        name="biggan",
        folder="BigGAN-Tensorflow",
        saved="saved/BigGAN_own_hinge_128_128_sn",
        exported="BigGAN.model-5",
        settings=(*PICTURES, "model.width=8"),
        counts=0,
    ),
    "alexnet": Original(
        name="alexnet",
        folder=f"{ASCEND}/AlexNet_ID0072_for_TensorFlow",
        exported="model.ckpt-4",
        settings=("model.num_classes=10", "data.batch_size=4"),
    ),
    "resnext50": Original(
        name="resnext50",
        folder=f"{ASCEND}/ResNext50_ID0070_for_TensorFlow/code/resnext50_train",
        exported="model.ckpt-4",
        settings=("model.num_classes=10", "data.batch_size=4"),
    ),
}


def code_of(original: Original) -> Path:
    """The folder of an original's code; skips the test where it is not there."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        pytest.skip(f"needs the originals' code, in a folder that {VARIABLE} names")
    folder = Path(named) / original.folder
    if not folder.is_dir():
        pytest.skip(f"needs {original.folder} in the folder that {VARIABLE} names")
    return folder


def train_original(original: Original, updates: int, place: Path) -> TensorBundle:
    """Let the original train until it has had so many updates; gives what it saved."""
    command = [tensorflow_python(), SIDE, original.name, code_of(original), str(updates)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return open_checkpoint(place / original.saved)


def assert_counted(bundle: TensorBundle, recipe: str, updates: int) -> None:
    """Powers as TensorFlow multiplies them, in float32, and the global step as the original's."""
    original = ORIGINALS[recipe]
    made = override(create_recipe(recipe), original.settings)
    optimizers = network_of(made, recipe).names.optimizers
    rules = [one.optimizer for one in made.optimization().values()]
    for number, optimizer in enumerate(optimizers):
        # BigGAN's generator has its turn in the first of two steps.
        own = (updates + 1) // 2 if number else updates
        for name, beta in zip(optimizer.powers or (), (rules[0].beta1, rules[0].beta2)):  # noqa: B905
            expected = np.multiply.accumulate(np.full(own + 1, beta, dtype=np.float32))[-1]
            assert bundle.read(name) == expected, name
    if original.counts:
        assert bundle.read("global_step") == updates * original.counts


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ORIGINALS)
def test_original_resumes_from_our_run_that_resumed_from_its_own(
    recipe: str, tmp_path: Path
) -> None:
    original = ORIGINALS[recipe]
    code_of(original)
    write_pictures(tmp_path / "pictures", side=128)
    write_words(tmp_path / "clips", WORDS)
    first, second, third = original.updates

    theirs = train_original(original, first, tmp_path)
    assert_counted(theirs, recipe, first)
    settings = [part for setting in original.settings for part in ("--set", setting)]
    settings += ["--set", f"training.duration={second}it", "--set", "training.evaluate_every="]
    done = here("weights", "import", recipe, original.saved, "--to", "run", *settings, cwd=tmp_path)
    assert f"step {first}\n" in done.out
    assert "with the state of the optimizer" in done.out
    assert find_checkpoint(tmp_path / "run" / "checkpoints", "last").step == first

    here("train", "--resume", "--run-dir", "run", "--device", "cpu", cwd=tmp_path)
    (tmp_path / original.saved).rename(tmp_path / "before")
    out = f"{original.saved}/{original.exported}"
    here("weights", "export", "run", "--to", "tf1", "--out", out, cwd=tmp_path)
    ours = open_checkpoint(tmp_path / out)
    assert_counted(ours, recipe, second)
    lacking = set(theirs.names()) - set(ours.names())
    assert not lacking

    after = train_original(original, third, tmp_path)
    assert after.prefix != ours.prefix
    assert_counted(after, recipe, third)
    for name in after.names():
        assert np.all(np.isfinite(after.read(name))), name


def test_beta_powers_are_in_minimizes_name_scope_and_slots_are_not() -> None:
    state = adam_state(scope="train")
    assert state.powers == ("train/beta1_power", "train/beta2_power")
    assert state.slots == adam_state().slots
