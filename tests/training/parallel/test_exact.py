"""`training.sums=exact`: the same bits for any number of ranks, also if it changes in between."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.devices.registry import open_device
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.parallel.exact import Exact, _Messages, adding_exactly
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.replicated import Replicated
from jumar.training.parallel.tree_sum import Span, TreeSum
from jumar.training.state_hashes import checkpoint_hashes
from tests.checkout import CHECKOUT
from tests.cli.command_line import environment
from tests.training.small_tasks import point_task

PROGRAM, STEPS = "tests.training.exact_on_ranks", 7
PLACES = (CHECKOUT, CHECKOUT / "src", CHECKOUT / "benchmarks")

Result = tuple[Mapping[str, str], list[dict[str, Any]]]


def trained(case: str, worlds: str, folder: Path) -> list[Result]:
    """Of each run the hashes of everything that it saved, and what it logged."""
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, str(folder), case, worlds, str(STEPS)],
        cwd=CHECKOUT,
        env={**environment(), "PYTHONPATH": os.pathsep.join(map(str, PLACES))},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [result(folder / world) for world in worlds.split(",")]


def result(run: Path) -> Result:
    *_, last = list_checkpoints(run / "checkpoints")
    assert last.step == STEPS
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [
        {
            name: value
            for name, value in json.loads(line).items()
            if not name.endswith(("_ms", "_s", "seconds", "time", "fps"))
        }
        for line in lines
        if '"kind": "device"' not in line
    ]
    # A run in several parts is also scored at the end of each.
    rows = [row for row in rows if row["kind"] == "train" or row["step"] == STEPS]
    return checkpoint_hashes(last), rows


@pytest.mark.parametrize(
    ("case", "worlds"),
    [("points", "1,2,6,3+1+2"), ("gan", "1,4"), ("masked", "1,3"), ("overflow", "1,2")],
)
def test_weights_optimizer_averages_and_log_are_bitwise_equal(
    case: str, worlds: str, tmp_path: Path
) -> None:
    alone, *others = trained(case, worlds, tmp_path)
    hashes, rows = alone
    assert [row["step"] for row in rows if row["kind"] == "train"] == list(range(1, STEPS + 1))
    for other_hashes, other_rows in others:
        assert other_hashes == hashes
        assert other_rows == rows


def test_comparison_detects_all_reduce_averaging(
    tmp_path: Path,
) -> None:
    (one, _), (three, _) = trained("fast", "1,3", tmp_path)
    assert {name for name in one if one[name] != three[name]} >= {"weights/first.weight"}


def test_one_rank_sends_nothing_and_several_send_slices_starting_with_the_next() -> None:
    alone = Ranks()
    assert adding_exactly(alone) is alone
    ranks = adding_exactly(Replicated(rank=1, world=4, local_world=2))
    assert ranks == Exact(rank=1, world=4, local_world=2)
    exchange = ranks.tree_exchange()
    assert isinstance(exchange, _Messages)
    assert exchange._other_ranks == [2, 3, 0]
    values = torch.arange(10.0)
    assert [exchange._slice(values, rank).tolist() for rank in range(4)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
        [9],
    ]
    few = torch.arange(2.0)
    assert [exchange._slice(few, rank).tolist() for rank in range(4)] == [[0], [1], [], []]
    assert exchange._send({}, {}) == []
    assert exchange._send({2: [few[2:]]}, {3: [few[2:]]}) == []


def test_gradients_summed_every_step_are_not_averaged_or_shared_again() -> None:
    ranks = Exact(rank=1, world=4, local_world=2)
    objective = point_task().objectives[0]
    assert ranks.wrap(objective, objective, open_device("cpu")) is objective
    value = torch.tensor(3.0)
    assert ranks.mean(value) is value
    ranks.share_buffers(objective)
    assert value.item() == 3.0


def test_single_rank_sums_its_parts_in_tree_order() -> None:
    exchange = Exact(rank=0, world=1, local_world=1).tree_exchange()
    for total in (1, 2, 3, 5):
        parts = [torch.tensor([0.1, 1e8, -3.0]) * (number + 1) for number in range(total)]
        sums, expected = TreeSum(total), TreeSum(total)
        for number, part in enumerate(parts):
            sums.add(Span(number, 1), part.clone())
            expected.add(Span(number, 1), part.clone())
        assert torch.equal(exchange.whole(sums), expected.whole())
