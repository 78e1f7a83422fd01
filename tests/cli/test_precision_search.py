"""`jumar precision search` finds the op types that low precision hurts, by real training runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import Done, any_end, here, settings, train

CHECKOUT = Path(__file__).resolve().parents[2]
SHORT = settings(training__duration="12it", precision__mode="allow_mix_precision_bf16")
OWN = ("--import", "tests.cli.small_recipe", "--device", "cpu")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are separate processes, which import the tests' recipes too."""
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT / 'src'}:{CHECKOUT}")


def search(*arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    return here("precision", "search", *arguments, *OWN, cwd=cwd, code=code)


def test_healthy_network_needs_nothing_in_float32(tmp_path: Path) -> None:
    done = search(
        *("small", *SHORT, "--tolerance", "loss=20%", "--seeds", "1", "--trainings", "3"),
        cwd=tmp_path,
    )
    assert "in float32: nothing" in done.out
    assert "2 runs; op list: ops_info.json" in done.out
    lists = json.loads((tmp_path / "ops_info.json").read_text())
    assert set(lists) == {"white-list"}
    here("precision", "lint", "ops_info.json", cwd=tmp_path)


def test_out_of_range_op_type_stays_float32_and_training_accepts_the_list(tmp_path: Path) -> None:
    emulated = settings(
        training__duration="4it", precision__mode="allow_mix_precision", model__weight="3e4"
    )
    own = ("--import", "tests.cli.overflowing_recipe")
    done = search(
        *("overflowing", *emulated, *own, "--emulate-fp16", "--tolerance", "loss=30%", "--json"),
        *("--seeds", "1", "--trainings", "4", "--to", "lists/mine.json"),
        cwd=tmp_path,
    )
    content: dict[str, Any] = json.loads(done.out[done.out.index("{\n") :])
    by_type = {row["type"]: row for row in content["op_types"]}
    assert by_type["MatMul"]["gradient_error"] is None
    assert "MatMul" in [row["type"] for row in content["kept"]]
    assert content["is_confirmed"]
    mixlist = settings(precision__modify_mixlist="lists/mine.json", precision__emulate_fp16="true")
    here("train", "overflowing", *emulated, *mixlist, *own, *OWN, cwd=tmp_path)


def test_run_is_searched_as_it_was_trained(tmp_path: Path) -> None:
    train("--run-dir", "run", *SHORT, cwd=tmp_path)
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*"))
    arguments = ("run", "--tolerance", "loss=20%", "--seeds", "1", "--trainings", "3")
    done = search(*arguments, cwd=tmp_path)
    assert "in float32: nothing" in done.out
    assert (tmp_path / "runs" / "run-search" / "float32-seed-1" / "results.json").is_file()
    after = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*"))
    assert after == before


def test_layer_in_float32_does_not_overflow_in_training_or_evaluation(tmp_path: Path) -> None:
    own = ("--import", "tests.cli.overflowing_recipe", "--device", "cpu")
    emulated = settings(
        training__duration="4it",
        precision__mode="allow_mix_precision",
        precision__emulate_fp16="true",
    )
    kept = settings(precision__float32_layers="classifier")
    here("train", "overflowing", *emulated, *own, "--run-dir", "low", cwd=tmp_path, code=3)
    here("train", "overflowing", *emulated, *kept, *own, "--run-dir", "kept", cwd=tmp_path)
    here("evaluate", "kept", *own, cwd=tmp_path)
    wrong = settings(precision__float32_layers="clasifier")
    done = here("train", "overflowing", *emulated, *wrong, *own, cwd=tmp_path, code=2)
    assert "Did you mean 'classifier'?" in done.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("small", "--tolerance", "loss"), "is not a tolerance"),
        (("small", "--tolerance", "loss=1%"), "has no op lists"),
        (("small", *SHORT, "--tolerance", "loss=1%", "--trainings", "3"), "too few"),
        (("small", *SHORT, "--tolerance", "loss=1%", "--seeds", "0"), "--seeds: cannot be 0"),
        (("smal", *SHORT, "--tolerance", "loss=1%"), "unknown recipe"),
    ],
)
def test_unsearchable_runs_are_refused_before_any_training(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = any_end("precision", "search", *arguments, *OWN, cwd=tmp_path)
    assert done.code == 2, done
    assert message in done.message
    assert not list(tmp_path.rglob("results.json"))


def test_unknown_score_is_refused_and_known_ones_listed(tmp_path: Path) -> None:
    arguments = ("--tolerance", "top11=1", "--seeds", "1", "--trainings", "3")
    done = search("small", *SHORT, *arguments, cwd=tmp_path, code=2)
    assert "top1" in done.message.removeprefix("top11")
