"""A run resumes with another number of ranks, in the middle of an epoch, as if nothing changed."""

from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.recipes.registry import create_recipe
from jumar.runs.context import ChosenRun
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.state_hashes import checkpoint_hashes
from tests.cli.command_line import on_two_ranks
from tests.cli.in_process import here, settings

DEVICE = ("--device", "cpu")
EXACT = settings(
    data__path="digits",
    data__eval_path="none",
    data__batch_size=8,
    model__width=8,
    model__codes=8,
    training__sums="exact",
    training__micro_batch_size=2,
    training__log_every="1it",
    training__evaluate_every="",
)


def begun(name: str, steps: int, cwd: Path) -> None:
    duration = settings(training__duration=f"{steps}it")
    here("train", "vqvae-mnist", *DEVICE, "--run-dir", name, *EXACT, *duration, cwd=cwd)


@pytest.mark.slow
def test_weights_have_the_same_hash_as_in_an_uninterrupted_run(tmp_path: Path) -> None:
    begun("straight", 7, tmp_path)
    begun("changing", 3, tmp_path)
    resume = ("train", "--resume", "--run-dir", "changing", *DEVICE, "--set")
    code, out, err = on_two_ranks(*resume, "training.duration=5it", cwd=tmp_path)
    assert code == 0, out + err
    assert "batch: 8 = 2 ranks x 4" in out
    alone = here(*resume, "training.duration=7it", cwd=tmp_path)
    assert "batch: 8 = 1 rank x 8" in alone.out
    runs = [list_checkpoints(tmp_path / name / "checkpoints") for name in ("straight", "changing")]
    assert [run[-1].step for run in runs] == [7, 7]
    assert checkpoint_hashes(runs[0][-1]) == checkpoint_hashes(runs[1][-1])


def test_ranks_that_cannot_share_the_batch_are_refused(tmp_path: Path) -> None:
    begun("run", 1, tmp_path)
    run = RunDirectory(tmp_path / "run")
    (checkpoint,) = list_checkpoints(run.checkpoints)
    recipe = create_recipe("vqvae-mnist")
    chosen = ChosenRun(run=run, recipe=recipe, name="vqvae-mnist", imports=())
    assert chosen.shared_plan(Ranks(world=4), checkpoint).batch_size == 2
    with pytest.raises(UserError, match="batches of 8 samples, which 3 ranks cannot share"):
        chosen.shared_plan(Ranks(world=3), checkpoint)
