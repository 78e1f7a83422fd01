import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.experiments.run_reading import read_run
from jumar.ground.json_text import flattened
from tests.experiments.run_files import metric_lines, precision, results, write_run


def test_finished_run_is_read_completely(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", assignments=["precision.mode=force_fp16"]))
    assert run.state == "finished"
    assert run.reason == ""
    assert run.recipe == "alexnet"
    assert run.settings is not None
    assert flattened(run.settings)["precision.mode"] == "force_fp16"
    assert [record.step for record in run.train] == list(range(20, 201, 20))
    assert [record.step for record in run.evaluations] == [100, 200]
    assert run.results.metrics == {"top1": 96.0, "top5": 99.5, "loss": 0.25}
    assert run.results.headline is not None
    assert run.results.headline.name == "top1"
    assert run.results.eval_samples == 400
    assert run.results.memory_peak_bytes == 2 * 2**30
    assert run.faults == ()


def test_missing_directory_is_a_run_not_started(tmp_path: Path) -> None:
    run = read_run(tmp_path / "nothing")
    assert (run.state, run.reason, run.settings) == ("not run", "not run yet", None)


def test_truncated_last_line_of_a_run_that_was_killed_is_silently_ignored(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 220, "lo')
    (directory / "results.json").unlink()
    run = read_run(directory)
    assert run.state == "unfinished"
    assert run.train[-1].step == 200
    assert run.faults == ()
    assert run.reason == "not finished, last record at step 200"


def test_truncated_last_line_of_a_run_that_ended_is_a_fault(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    content = (directory / "metrics.jsonl").read_bytes()
    (directory / "metrics.jsonl").write_bytes(content[: content.index(b'"step": 60') + 20])
    run = read_run(directory)
    assert run.state == "finished"
    assert run.faults == (
        "an incomplete last line in metrics.jsonl (line 3; the records end at step 40)",
    )


def test_damaged_line_midway_is_a_fault_and_the_others_count(tmp_path: Path) -> None:
    lines = metric_lines()
    lines.insert(2, '{"kind": "tr')
    lines.insert(5, "[1, 2]")
    run = read_run(write_run(tmp_path / "run", lines=lines))
    assert len(run.train) == 10
    assert run.faults == ("2 damaged lines in metrics.jsonl (the first is line 3)",)


@pytest.mark.parametrize("spelled", ["null", "NaN", "Infinity", "-Infinity", "1e999"])
def test_non_finite_loss_is_none_in_any_notation(tmp_path: Path, spelled: str) -> None:
    line = f'{{"kind": "train", "step": 7, "epoch": 1.0, "loss": {spelled}, "total_loss": 2.0}}'
    (record,) = read_run(write_run(tmp_path / "run", lines=[line])).train
    assert record.loss is None
    assert record.total_loss == 2.0


def test_later_of_two_records_of_a_step_counts(tmp_path: Path) -> None:
    """A killed run that resumes from a checkpoint records the steps since then again."""
    lines = [
        json.dumps({"kind": "train", "step": step, "loss": loss})
        for step, loss in [(20, 1.0), (40, 0.9), (60, 0.8), (40, 0.5), (60, 0.4), (80, 0.3)]
    ]
    run = read_run(write_run(tmp_path / "run", lines=lines))
    assert [(record.step, record.loss) for record in run.train] == [
        (20, 1.0),
        (40, 0.5),
        (60, 0.4),
        (80, 0.3),
    ]


def test_model_and_averaged_weights_of_one_step_are_both_kept(tmp_path: Path) -> None:
    lines = [
        json.dumps({"kind": "evaluation", "step": 20, "top1": score, "weights": weights})
        for weights, score in [("model", 50.0), ("ema", 60.0)]
    ]
    run = read_run(write_run(tmp_path / "run", lines=lines))
    assert {record.weights: record.metrics["top1"] for record in run.evaluations} == {
        "model": 50.0,
        "ema": 60.0,
    }


def test_failure_names_reason_step_and_objective_once(tmp_path: Path) -> None:
    failure = {"step": 40, "objective": "classifier", "reason": "the loss is not finite"}
    run = read_run(write_run(tmp_path / "a", state="failed", failure=failure, metrics={}))
    assert run.reason == "the loss is not finite (step 40, objective classifier)"
    failure["reason"] = "the loss of classifier is not finite at step 40."
    run = read_run(write_run(tmp_path / "b", state="failed", failure=failure, metrics={}))
    assert run.reason == "the loss of classifier is not finite at step 40"


def test_interrupted_run_says_how_far_it_got(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", state="interrupted", steps=120, lines=[]))
    assert run.reason == "interrupted at step 120"


def test_results_without_throughput_or_metrics_are_readable(tmp_path: Path) -> None:
    run = read_run(
        write_run(tmp_path / "run", throughput=None, metrics={}, best=None, headline=None)
    )
    assert run.results.step_ms_median is None
    assert run.results.headline is None


@pytest.mark.parametrize("name", ["results.json", "recipe.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"3"])
def test_damaged_file_is_a_fault_and_the_rest_is_read(
    tmp_path: Path, name: str, content: bytes
) -> None:
    directory = write_run(tmp_path / "run")
    (directory / name).write_bytes(content)
    run = read_run(directory)
    assert len(run.faults) == 1
    assert name in run.faults[0]
    assert len(run.train) == 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    changes=st.dictionaries(st.sampled_from(sorted(results())), JSON, max_size=6),
    line=st.dictionaries(
        st.sampled_from(["kind", "step", "epoch", "loss", "top1", "weights"]),
        JSON | st.sampled_from(["train", "evaluation"]),
    ),
)
def test_reading_never_raises_for_any_values(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, object], line: dict[str, object]
) -> None:
    directory = tmp_path_factory.mktemp("any")
    write_run(directory / "run", lines=[json.dumps(line)], precision=precision("x"))
    (directory / "run" / "results.json").write_text(json.dumps({**results(), **changes}))
    run = read_run(directory / "run")
    assert isinstance(run.reason, str)
