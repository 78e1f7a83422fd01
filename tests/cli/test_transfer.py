"""Starting from other weights through the command line: what is taken over, and what is said."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.cli.in_process import settings, train
from tests.data.pictures import pets, write_files

NO_STEP = settings(training__duration="1it", optimizer__learning_rate=0, model__width=4)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A run over ten digits."""
    train("--run-dir", "first", *settings(training__duration="2it"), cwd=tmp_path)
    return tmp_path / "first"


def weights(run: Path) -> dict[str, torch.Tensor]:
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return load_file(newest / "model.safetensors")


def test_run_with_other_classes_loads_all_but_the_last_layer_and_says_so(
    first: Path, tmp_path: Path
) -> None:
    write_files(tmp_path / "pets", pets(4))
    options = settings(transfer__start_from=first, data__path="pets", data__eval_path="none")
    done = train("--run-dir", "second", *options, *NO_STEP, cwd=tmp_path)
    lines = done.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("weights from "))
    assert lines[at] == f"weights from {first}/checkpoints/step-00000002: 7 loaded"
    assert (
        "not loaded, wrong shape (2): classifier.bias 10 instead of 2, "
        "classifier.weight 10x16 instead of 2x16"
    ) in lines[at + 1]
    assert "initialised (2): classifier.weight, classifier.bias" in lines[at + 2]
    old, new = weights(first), weights(tmp_path / "second")
    assert torch.equal(old["body.0.weight"], new["body.0.weight"])
    assert new["classifier.weight"].shape == (2, 16)


@pytest.mark.parametrize("pattern", ["classifier", "classifier.weight,classifier.bias", "*fier*"])
def test_restore_exclude_reinitialises_the_named_parameters(
    first: Path, tmp_path: Path, pattern: str
) -> None:
    options = settings(transfer__start_from=first, transfer__restore_exclude=pattern, seed=7)
    done = train("--run-dir", "second", *options, *NO_STEP, cwd=tmp_path)
    assert "excluded by restore_exclude (2): " in done.out
    assert "initialised (2): " in done.out
    old, new = weights(first), weights(tmp_path / "second")
    assert torch.equal(old["body.0.weight"], new["body.0.weight"])
    assert not torch.equal(old["classifier.weight"], new["classifier.weight"])


def test_safetensors_file_can_be_a_source(first: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.safetensors"
    save_file({**weights(first), "elsewhere": torch.zeros(1)}, file)
    options = settings(transfer__start_from=file)
    done = train("--run-dir", "second", *options, *NO_STEP, cwd=tmp_path)
    assert f"weights from {file}: 9 loaded" in done.out
    assert "only in the file (1): elsewhere" in done.out
    old, new = weights(first), weights(tmp_path / "second")
    assert torch.equal(old["classifier.weight"], new["classifier.weight"])


def test_resumed_run_does_not_restart_from_the_source_weights(first: Path, tmp_path: Path) -> None:
    options = settings(transfer__start_from=first)
    train("--run-dir", "second", *options, cwd=tmp_path)
    longer = [*options, *settings(training__duration="3it")]
    again = train("--run-dir", "second", *longer, cwd=tmp_path)
    assert "weights from" not in again.out
    assert "resuming from step 2" in again.out


def test_averaged_weights_are_used_if_present(tmp_path: Path) -> None:
    average = settings(training__ema_decay=0.5, training__ema_warm_up="false")
    train("--run-dir", "first", *average, cwd=tmp_path)
    averaged = load_file(tmp_path / "first/checkpoints/step-00000002/ema.safetensors")
    for use, expected in (("true", averaged), ("false", weights(tmp_path / "first"))):
        options = settings(transfer__start_from="first", transfer__use_ema=use)
        train("--run-dir", use, *options, *NO_STEP, cwd=tmp_path)
        assert torch.equal(weights(tmp_path / use)["body.0.weight"], expected["body.0.weight"])


MISTAKES = {
    "nothing there": (["transfer.start_from=nowhere"], "there is no such file or folder: nowhere"),
    "a pattern that matches nothing": (
        ["transfer.start_from=first", "transfer.restore_exclude=dense"],
        "'dense' matches no weight",
    ),
    "another network": (["transfer.start_from=other.safetensors"], "no weight of"),
    "a file that is none": (["transfer.start_from=not.safetensors"], "cannot be read"),
    "a folder without a run": (["transfer.start_from=."], "there is no checkpoint"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named_and_leave_no_files(first: Path, tmp_path: Path, name: str) -> None:
    del first
    (tmp_path / "not.safetensors").write_text(json.dumps({}))
    save_file({"dense": torch.zeros(2)}, tmp_path / "other.safetensors")
    assignments, message = MISTAKES[name]
    options = [part for text in assignments for part in ("--set", text)]
    done = train("--run-dir", "second", *options, cwd=tmp_path, code=2)
    assert message in done.err
    assert not (tmp_path / "second").exists()
