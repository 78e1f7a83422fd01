"""`jumar precision diverge` replays runs of several ranks with the same number of ranks."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.cli.precision_diverge import _lines
from jumar.precision.dumps.ours import read_dump
from jumar.runs.diverging import Divergence
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.state_hashes import checkpoint_hashes, combined
from tests.cli.command_line import on_two_ranks
from tests.cli.in_process import here, settings

OWN = ("--import", "tests.cli.lopsided_recipe", "--device", "cpu")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run `a` of four steps on two ranks, with checkpoints of steps 2 and 4."""
    folder = tmp_path_factory.mktemp("runs")
    steps = settings(training__duration="4it", checkpoints__every="2it")
    command = ("train", "lopsided", *OWN, "--run-dir", "a", *steps)
    code, out, err = on_two_ranks(*command, cwd=folder)
    assert code == 0, out + err
    return folder


def report(*arguments: str, cwd: Path, code: int = 1) -> dict[str, Any]:
    done = here("precision", "diverge", "a", *arguments, *OWN, "--json", cwd=cwd, code=code)
    return json.loads(done.out)


def test_op_that_differs_on_one_rank_only_is_named_with_its_rank(place: Path) -> None:
    content = report("a", "--set-b", "model.fault=scales", "--to", "d", cwd=place)
    assert content["ranks"] == {"A": 2, "B": 2}
    assert content["replays"] == {"A": 3, "B": 3}
    assert (content["step"], content["rank"]) == (2, 1)
    op = content["op"]
    assert (op["layer"], op["op"], op["phase"]) == ("1", "aten.mul.Tensor", "forward")
    errors = {each["role"]: each["relative_error"] for each in content["values"]}
    assert errors["output"] == pytest.approx(1e-3, rel=1e-2)
    # The unchanged side gives the checkpoint that the two ranks of torchrun wrote.
    assert content["unlike_own_checkpoint"] == {}
    assert content["does_not_repeat"] == []
    ranks = {path.name for path in place.glob("d/B/step-00000002/*")}
    assert ranks == {"rank-0", "rank-1"}


def test_hashes_of_two_ranks_are_those_of_the_checkpoint_they_wrote(place: Path) -> None:
    done = here("precision", "diverge", "a", "--hashes", "a.json", *OWN, cwd=place)
    assert "replaying 2 steps from step 2 on 2 ranks" in done.out
    assert "2 steps hashed: a.json" in done.out
    content = json.loads((place / "a.json").read_text())
    assert content["machine"]["ranks"] == 2
    (written,) = (c for c in list_checkpoints(place / "a" / "checkpoints") if c.step == 4)
    first, both = combined(checkpoint_hashes(written)), content["hashes"]["4"]
    # Each rank has batch-norm averages of its own, and a checkpoint those of the first.
    assert {part for part in first if first[part] != both[part]} == {"weights"}
    alone = {**content, "machine": {**content["machine"], "ranks": 1}}
    (place / "alone.json").write_text(json.dumps(alone))
    files = ("precision", "diverge", "a.json", "alone.json")
    assert "ranks: 2 in A, 1 in B" in here(*files, cwd=place).out


def test_ops_of_runs_with_different_numbers_of_ranks_are_not_claimed_equal() -> None:
    report = Divergence(unequal=4, ranks=(1, 2), step=2, parts=["weights"], dump=Path("d"))
    lines = list(_lines(report))
    assert "  ops can only be compared between runs with the same number of ranks" in lines
    assert not any("none of its ops differ" in line for line in lines)


def test_one_rank_dumps_the_whole_batch_of_two_by_default(place: Path) -> None:
    dump = ("precision", "dump", "a", *OWN, "--level", "modules", "--steps", "3", "--to")
    assert "batch: 8 = 1 rank x 8" in here(*dump, "whole", cwd=place).out
    (taken,) = (
        value.shape
        for call in read_dump(place / "whole").calls
        if (call.layer, call.phase) == ("", "forward")
        for value in call.values
        if value.role == "input"
    )
    assert taken[0] == 8
    own = ("--set", "data.batch_size=4")
    assert "batch: 4 = 1 rank x 4" in here(*dump, "own", *own, cwd=place).out
    noise = ("precision", "noise", "a", *OWN, "--step", "3", "--by", "op", "--json")
    losses = [json.loads(here(*noise, *more, cwd=place).out)["loss"] for more in ((), own)]
    assert losses[0] != losses[1]


@pytest.mark.parametrize(
    ("fault", "message"),
    [("fails", "rank 1 has no such data"), ("dies", "the process that replays A was killed")],
)
def test_failure_of_one_rank_ends_the_others_with_its_reason(
    place: Path, fault: str, message: str
) -> None:
    options = ("--set-a", f"model.fault={fault}", *OWN, "--hashes", f"{fault}.json")
    done = here("precision", "diverge", "a", *options, cwd=place, code=2)
    assert message in done.message
    assert not (place / f"{fault}.json").exists()
