"""Learning in slices: a run stops at the deadline, with a checkpoint, and goes on."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch._dynamo  # noqa: F401 - as the command does, once for all processes

from on_accelerator.child import Child
from on_accelerator.learning import trained_for_a_while
from on_accelerator.measuring import Context, GoesOn, Row
from on_accelerator.written_data import clips

SAVING_S = 25.0
"""Set apart for the checkpoint."""


def one_slice(context: Context, steps: int) -> tuple[str, list[Row]]:
    """The result of a slice in a process, as the command starts it."""
    settings = [
        f"data.path={clips(context)}",
        "data.batch_size=4",
        f"training.duration={steps}it",
        "training.log_every=1it",
        "training.evaluate_every=",
        "data.workers=0",
    ]

    def run(pipe: object) -> None:
        try:
            rows = trained_for_a_while(context, "keywords", "ds-cnn-s", settings)
            pipe.send(("ended", list(rows)))  # type: ignore[attr-defined]
        except GoesOn as unfinished:
            pipe.send(("goes on", list(unfinished.rows)))  # type: ignore[attr-defined]

    child = Child(run, context.work / "log.txt", leads=True)
    try:
        return child.receive(120)
    except EOFError:
        pytest.fail((context.work / "log.txt").read_text()[-2000:])
    finally:
        child.end()


def test_run_stops_at_the_deadline_and_resumes_in_the_next_call(tmp_path: Path) -> None:
    context = Context(device="cpu", small=True, out=tmp_path, work=tmp_path, data=None, deadline=0)
    state, rows = "", list[Row]()
    for seconds in (4, 20, 60):  # a busy machine may take long to begin
        soon = replace(context, deadline=time.time() + SAVING_S + seconds)
        state, rows = one_slice(soon, 100_000)
        assert state == "goes on"
        if rows:
            break
    (row,) = rows
    done = row["steps"]
    assert 0 < done < 100_000
    state, rows = one_slice(replace(context, deadline=time.time() + 600), done + 2)
    assert (state, rows[0]["steps"]) == ("ended", done + 2)
    assert f"resuming from step {done}" in (tmp_path / "log.txt").read_text()


def test_nothing_is_trained_without_time_for_a_slice(tmp_path: Path) -> None:
    late = Context(
        device="cpu", small=True, out=tmp_path, work=tmp_path, data=None, deadline=time.time() + 20
    )
    assert one_slice(late, 10) == ("goes on", [])
    assert list((tmp_path / "learning").rglob("checkpoints/*")) == []
