"""`jumar evaluate`, and runs that are measured on the clock or in percent."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import on_two_ranks
from tests.cli.in_process import SMALL_RECIPE, here, settings, train

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Six steps, of which 2, 4 and 6 are kept and scored."""
    often = settings(
        training__duration="6it",
        training__evaluate_every="2it",
        checkpoints__every="2it",
        optimizer__learning_rate=0.3,
    )
    train("--run-dir", "run", *often, cwd=tmp_path)
    return tmp_path / "run"


def table(printed: str) -> dict[int, list[float]]:
    """Metrics by step."""
    lines = printed.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["step"])
    assert lines[at].split() == ["step", "epoch", "top1", "top5", "loss", "checkpoint_time(UTC)"]
    rows = [line.split() for line in lines[at + 1 :]]
    return {int(row[0]): [float(value) for value in row[2:5]] for row in rows}


def noted(run: Path) -> dict[int, dict[str, float]]:
    records = [json.loads(path.read_text()) for path in run.glob("checkpoints/*/checkpoint.json")]
    return {record["step"]: record["metrics"] for record in records}


def test_all_kept_checkpoints_get_the_scores_of_training(run: Path, tmp_path: Path) -> None:
    before = noted(run)
    result = table(here("evaluate", "run", "--device", "cpu", cwd=tmp_path).out)
    assert list(result) == [2, 4, 6]
    for step, (top1, top5, loss) in result.items():
        assert top1 == pytest.approx(before[step]["top1"], abs=1e-3)
        assert top5 == pytest.approx(before[step]["top5"], abs=1e-3)
        assert loss == pytest.approx(before[step]["loss"], abs=1e-3)
    assert noted(run) == {step: pytest.approx(scores) for step, scores in before.items()}


def test_one_checkpoint_is_chosen_as_last_best_or_by_its_step(run: Path, tmp_path: Path) -> None:
    scores = {step: metrics["top1"] for step, metrics in noted(run).items()}
    best = max(scores, key=lambda step: (scores[step], step))
    for which, step in (("last", 6), ("best", best), ("4", 4)):
        done = here("evaluate", "run", "--checkpoint", which, cwd=tmp_path)
        assert list(table(done.out)) == [step]


def test_missing_checkpoint_is_refused_and_existing_ones_listed(run: Path, tmp_path: Path) -> None:
    done = here("evaluate", "run", "--checkpoint", "5", cwd=tmp_path, code=2)
    assert "there is no checkpoint '5'" in done.err
    assert done.out == ""
    assert "Available: 2, 4, 6, last, best." in done.err


def test_scores_with_changed_settings_are_not_recorded_in_the_run(
    run: Path, tmp_path: Path
) -> None:
    before = noted(run)
    changed = settings(loss__label_smoothing=0.5)
    result = table(here("evaluate", "run", *changed, cwd=tmp_path).out)
    assert result[6][2] != pytest.approx(before[6]["loss"], abs=1e-3)
    assert noted(run) == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere", "nowhere: there is no such run directory"),
        ("empty", "it has no recipe.json"),
        ("broken", "cannot be read"),
        ("other", "lacks the field 'recipe'"),
    ],
)
def test_directory_that_is_not_a_run_is_refused(tmp_path: Path, place: str, message: str) -> None:
    for name in ("empty", "broken", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "recipe.json").write_text('{"recipe": "alex')
    (tmp_path / "other" / "recipe.json").write_text("{}")
    assert message in here("evaluate", place, cwd=tmp_path, code=2).err


def test_damaged_checkpoint_is_named(run: Path, tmp_path: Path) -> None:
    file = run / "checkpoints" / "step-00000004" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:40])
    done = here("evaluate", "run", "--checkpoint", "4", cwd=tmp_path, code=2)
    assert str(file.relative_to(tmp_path)) in done.err


def test_two_ranks_score_like_one_even_if_one_is_idle(run: Path, tmp_path: Path) -> None:
    """296 samples are less than the first rank takes."""
    options = settings(data__eval_batch_size=1000)
    alone = here("evaluate", "run", "--device", "cpu", *options, cwd=tmp_path).out
    own = ("--import", "tests.cli.small_recipe", "--device", "cpu")
    code, out, error = on_two_ranks("evaluate", "run", *own, *options, cwd=tmp_path)
    assert code == 0, out + error
    assert "evaluation data: 296 samples" in out
    together, expected = table(out), table(alone)
    assert together.keys() == expected.keys()
    for step, values in expected.items():
        assert together[step] == pytest.approx(values, abs=1.1e-3)


def test_timed_run_logs_scores_saves_and_ends_by_the_clock(tmp_path: Path) -> None:
    clock = settings(
        training__duration="1.5s",
        schedule__kind="constant",
        training__log_every="0.5s",
        training__evaluate_every="1s",
        checkpoints__every="1s",
    )
    done = train("--run-dir", "run", *clock, cwd=tmp_path)
    assert "training for training.duration" in done.out
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["state"] == "finished"
    assert 1.5 <= results["elapsed_s"] < 5
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    logged = [record["elapsed_s"] for record in records if record["kind"] == "train"]
    assert len(logged) >= 2
    assert logged[0] >= 0.5
    assert [record["kind"] for record in records].count("evaluation") == 2
    assert len(noted(tmp_path / "run")) == 2
    # The time is up, so that the same command has nothing to do, and a longer one goes on.
    assert "is finished" in train("--run-dir", "run", *clock, cwd=tmp_path).out
    longer = [*clock, *settings(training__duration="1.7s")]
    assert (
        f"resuming from step {results['steps']}"
        in train("--run-dir", "run", *longer, cwd=tmp_path).out
    )


def test_lengths_in_percent_are_shares_of_the_run(tmp_path: Path) -> None:
    shares = settings(
        training__duration="10it",
        training__log_every="20%",
        training__evaluate_every="50%",
        checkpoints__every="50%",
        schedule__warmup="30%",
    )
    train("--run-dir", "run", *shares, cwd=tmp_path)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    steps = {
        kind: [record["step"] for record in records if record["kind"] == kind]
        for kind in ("train", "evaluation")
    }
    assert steps == {"train": [2, 4, 6, 8, 10], "evaluation": [5, 10]}
    assert sorted(noted(tmp_path / "run")) == [5, 10]
    assert records[0]["learning_rate"] == pytest.approx(0.02 * 2 / 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "depends on it (schedule.decay_until=100%)"),
        ({"schedule__kind": "exponential", "schedule__every": "10%"}, "schedule.every=10%"),
        ({"schedule__kind": "constant", "schedule__warmup": "5%"}, "schedule.warmup=5%"),
        ({"schedule__kind": "constant", "training__log_every": "5%"}, "training.log_every: '5%'"),
        ({"schedule__kind": "constant", "checkpoints__every": "5%"}, "checkpoints.every: '5%'"),
    ],
)
def test_share_of_a_timed_run_is_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    options = settings(training__duration="9s", **changed)
    done = here("train", *SMALL_RECIPE, "--run-dir", "run", *options, cwd=tmp_path, code=2)
    assert message in done.err
    assert not (tmp_path / "run").exists()
