"""Weights out of a run and into another: nothing is lost, and nothing happens by halves."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.training.checkpoint_parts import Slice, write_part
from jumar.training.settings import TransferSettings
from jumar.training.transfer import weights_path
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.tensor_bundle import open_checkpoint
from tests.cli.in_process import Done, here

RECIPES = "tests.runs.exchanged_recipe"
AVERAGE = "/ExponentialMovingAverage"


def weights(*arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    more = [] if arguments[0] == "show" else ["--import", RECIPES]
    return here("weights", *arguments, *more, cwd=cwd, code=code)


def trained(recipe: str, place: Path) -> Path:
    """A run of two steps, exported."""
    here("train", recipe, "--import", RECIPES, "--device", "cpu", "--run-dir", "run", cwd=place)
    weights("export", "run", "--to", "tf1", cwd=place)
    return place / "run"


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("exchanged", tmp_path_factory.mktemp("beside"))


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("exchanged-swapped", tmp_path_factory.mktemp("swapped"))


def stored(run: Path, kind: str) -> dict[str, torch.Tensor]:
    (checkpoint,) = (run / "checkpoints").iterdir()
    return load_file(checkpoint / f"{kind}.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    """Bit for bit, but for torch's count of batches, which TensorFlow does not have."""
    first, second = (
        {name: value for name, value in weights.items() if "num_batches" not in name}
        for weights in (first, second)
    )
    return set(first) == set(second) and all(torch.equal(first[k], second[k]) for k in first)


def folder(path: Path) -> list[str]:
    return sorted(str(result.relative_to(path)) for result in path.rglob("*"))


def test_averages_are_exported_next_to_the_trained_weights(beside: Path) -> None:
    bundle = open_checkpoint(beside / "tf1")
    model, ema = stored(beside, "model"), stored(beside, "ema")
    kernel = model["conv.weight"].numpy().transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(bundle.read("net/conv2d/kernel"), kernel)
    average = ema["classifier.weight"].numpy().T
    np.testing.assert_array_equal(bundle.read(f"head/dense/kernel{AVERAGE}"), average)
    assert f"net/batch_normalization/moving_mean{AVERAGE}" not in bundle.names()
    assert bundle.read("global_step") == 2
    assert bundle.entry("global_step").dtype == "int64"


def test_swapped_averages_replace_their_weights(swapped: Path) -> None:
    bundle = open_checkpoint(swapped / "tf1")
    model, ema = stored(swapped, "model"), stored(swapped, "ema")
    bias = bundle.read("net/conv2d/bias")
    np.testing.assert_array_equal(bias, ema["conv.bias"].numpy())
    raw = bundle.read(f"net/conv2d/bias{AVERAGE}")
    np.testing.assert_array_equal(raw, model["conv.bias"].numpy())
    head = bundle.read("head/dense/bias")
    np.testing.assert_array_equal(head, model["classifier.bias"].numpy())
    assert f"head/dense/bias{AVERAGE}" not in bundle.names()


def test_export_and_import_round_trip_bitwise_with_equal_scores(
    beside: Path, tmp_path: Path
) -> None:
    done = weights("import", "exchanged", beside / "tf1", "--to", "again", cwd=tmp_path)
    assert "8 of 8 weights of exchanged, step 2" in done.out
    assert "with averages: 6" in done.out
    for kind in ("model", "ema"):
        assert same(stored(beside, kind), stored(tmp_path / "again", kind)), kind
    scores = [
        here("evaluate", run, "--device", "cpu", cwd=tmp_path).out.splitlines()[-1].split()
        for run in (beside, "again")
    ]
    assert scores[0][0] == scores[1][0] == "2"
    assert scores[0][2:5] == scores[1][2:5]


def test_imported_run_opens_like_a_trained_one(beside: Path, tmp_path: Path) -> None:
    weights("import", "exchanged", beside / "tf1", "--to", "again", cwd=tmp_path)
    opened = open_trained(TrainedRequest(run_dir=tmp_path / "again", device="cpu"))
    assert (opened.name, opened.checkpoint.step, opened.weights) == ("exchanged", 2, "ema")
    opened.policy.close()
    assert same(stored(beside, "ema"), dict(opened.model.state_dict()))


def test_swapped_averages_are_swapped_back_on_import(swapped: Path, tmp_path: Path) -> None:
    weights("import", "exchanged-swapped", swapped / "tf1", "--to", "again", cwd=tmp_path)
    assert same(stored(swapped, "model"), stored(tmp_path / "again", "model"))
    averaged = stored(tmp_path / "again", "ema")
    assert torch.equal(averaged["conv.weight"], stored(swapped, "ema")["conv.weight"])
    # The original keeps no average of the head, so none is imported.
    assert torch.equal(averaged["classifier.bias"], stored(swapped, "model")["classifier.bias"])


def test_safetensors_file_gets_the_averages_or_the_weights_as_trained(
    beside: Path, tmp_path: Path
) -> None:
    weights("import", "exchanged", beside / "tf1", "--to", "a.safetensors", cwd=tmp_path)
    assert same(load_file(tmp_path / "a.safetensors"), stored(beside, "ema"))
    weights("import", "exchanged", beside / "tf1", "--to", "r.safetensors", "--raw", cwd=tmp_path)
    assert same(load_file(tmp_path / "r.safetensors"), stored(beside, "model"))
    assert (tmp_path / "r.safetensors").stat().st_mode & 0o044 == 0o044


def test_safetensors_file_is_exported_by_its_recipe(beside: Path, tmp_path: Path) -> None:
    weights("import", "exchanged", beside / "tf1", "--to", "r.safetensors", "--raw", cwd=tmp_path)
    out = ["export", "r.safetensors", "--to", "tf1", "--recipe", "exchanged", "--out", "tf/m"]
    weights(*out, cwd=tmp_path)
    ours, theirs = open_checkpoint(tmp_path / "tf/m"), open_checkpoint(beside / "tf1")
    for name in ours.names():
        if name != "global_step":
            np.testing.assert_array_equal(ours.read(name), theirs.read(name))
    done = weights(*out[:4], cwd=tmp_path, code=2)
    assert "--recipe NAME" in done.message
    done = weights(*out, "--set", "model.num_classes=3", cwd=tmp_path, code=2)
    assert "'classifier.weight' is 10x16 instead of 3x16" in done.message


def test_run_with_classes_counted_from_data_exports_without_stating_them(
    tmp_path: Path,
) -> None:
    options = ["--import", RECIPES, "--set", "model.num_classes=0", "--device", "cpu"]
    here("train", "exchanged", *options, "--run-dir", "run", cwd=tmp_path)
    weights("export", "run", "--to", "tf1", cwd=tmp_path)
    bundle = open_checkpoint(tmp_path / "run" / "tf1")
    assert bundle.entry("head/dense/kernel").shape == (16, 10)
    opened = open_trained(TrainedRequest(run_dir=tmp_path / "run", device="cpu"))
    opened.policy.close()
    assert same(stored(tmp_path / "run", "ema"), dict(opened.model.state_dict()))
    model = next((tmp_path / "run" / "checkpoints").iterdir()) / "model.safetensors"
    out = ["--recipe", "exchanged", "--set", "model.num_classes=0", "--out", "file"]
    weights("export", model, "--to", "tf1", *out, cwd=tmp_path)
    assert open_checkpoint(tmp_path / "file").entry("head/dense/bias").shape == (10,)
    refused = weights(
        "export",
        "run",
        "--to",
        "tf1",
        "--out",
        "x",
        "--set",
        "model.num_classes=3",
        cwd=tmp_path,
        code=2,
    )
    assert "instead of 3x16" in refused.message
    assert not (tmp_path / "x").exists()


def changed(run: Path, place: Path, **changes: np.ndarray | None) -> Path:
    """The exported checkpoint with variables added or taken away."""
    bundle = open_checkpoint(run / "tf1")
    tensors = {name: bundle.read(name) for name in bundle.names()}
    for name, value in changes.items():
        if value is None:
            del tensors[name.replace("__", "/")]
        else:
            tensors[name.replace("__", "/")] = value
    write_bundle(place / "changed", tensors)
    return place / "changed"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param(
            {"head__dense__bias": None, "head__dense__bias" + AVERAGE: None},
            "missing in the file (1): head/dense/bias for classifier.bias",
            id="missing",
        ),
        pytest.param(
            {"extra__kernel": np.zeros(3)}, "left over in the file (1): extra/kernel", id="left"
        ),
        pytest.param(
            {"head__dense__bias": np.zeros(7)},
            "with a different shape (1): head/dense/bias 7 for classifier.bias, which needs 10",
            id="shape",
        ),
    ],
)
def test_mismatches_are_reported_and_partial_import_is_opt_in(
    beside: Path, tmp_path: Path, changes: dict[str, np.ndarray | None], told: str
) -> None:
    file = changed(beside, tmp_path, **changes)
    before = folder(tmp_path)
    arguments = ("import", "exchanged", file, "--to", "part")
    done = weights(*arguments, cwd=tmp_path, code=2)
    assert f"{file}: matches 'exchanged' only in part" in done.message
    assert told in done.message
    assert "Nothing was written" in done.message
    assert folder(tmp_path) == before
    done = weights(*arguments, "--partial", cwd=tmp_path)
    assert told in done.out
    model = stored(tmp_path / "part", "model")
    assert torch.equal(model["conv.weight"], stored(beside, "model")["conv.weight"])


def test_network_settings_in_a_bert_file_are_named_and_work(shared: Path, tmp_path: Path) -> None:
    file = shared / "data" / "pretrained" / "bert-tiny-ckpt" / "bert_model.ckpt"
    command = ("import", "bert-base", file, "--to", "bert.safetensors")
    refused = weights(*command, cwd=tmp_path, code=2).message
    advice = refused.partition("Give the network the file's sizes: ")[2].partition(";")[0]
    fields = ("hidden_size=4", "num_layers=2", "intermediate_size=16", "num_heads=4")
    assert advice.split(" --set ") == [
        f"--set model.{fields[0]}",
        *(f"model.{field}" for field in (*fields[1:], "max_positions=16")),
    ]
    done = weights(*command, *advice.split(), cwd=tmp_path)
    assert "46 of 46 weights of bert-base" in done.out


def test_file_of_another_network_is_refused_even_in_part(tmp_path: Path) -> None:
    write_bundle(tmp_path / "other", {"a": np.zeros(2)})
    arguments = ("import", "exchanged", "other", "--to", "part", "--partial")
    assert "not at all" in weights(*arguments, cwd=tmp_path, code=2).message
    assert not (tmp_path / "part").exists()


def test_damage_in_the_last_variable_leaves_no_files(beside: Path, tmp_path: Path) -> None:
    file = changed(beside, tmp_path)
    data = tmp_path / "changed.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[-30] ^= 1
    data.write_bytes(content)
    before = folder(tmp_path)
    for to in ("run", "some.safetensors"):
        done = weights("import", "exchanged", file, "--to", to, cwd=tmp_path, code=2)
        assert "checksum" in done.message
    assert folder(tmp_path) == before


def test_existing_run_is_not_overwritten(beside: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    done = weights("import", "exchanged", beside / "tf1", "--to", "there", cwd=tmp_path, code=2)
    assert "'there' already exists" in done.message
    (tmp_path / "one.safetensors").write_bytes(b"mine")
    file = ("--to", "one.safetensors")
    done = weights("import", "exchanged", beside / "tf1", *file, cwd=tmp_path, code=2)
    assert "'one.safetensors' already exists" in done.message
    assert (tmp_path / "one.safetensors").read_bytes() == b"mine"


def test_imported_weights_start_a_new_run_instead_of_resuming(beside: Path, tmp_path: Path) -> None:
    weights("import", "exchanged", beside / "tf1", "--to", "again", cwd=tmp_path)
    resumed = ("train", "--resume", "--run-dir", "again", "--device", "cpu")
    done = here(*resumed, cwd=tmp_path, code=2)
    assert "no optimizer state, so it cannot be resumed" in done.message
    assert "transfer.start_from" in done.message
    start = ("train", "exchanged", "--import", RECIPES, "--device", "cpu", "--run-dir", "new")
    done = here(*start, "--set", "transfer.start_from=again", cwd=tmp_path)
    assert "9 loaded" in done.out
    file = beside / "tf1"
    done = here(*start[:-1], "other", "--set", f"transfer.start_from={file}", cwd=tmp_path, code=2)
    assert "jumar weights import" in done.message


def test_recipe_with_averages_falls_back_to_the_weights_if_the_file_has_none(
    beside: Path, tmp_path: Path
) -> None:
    bundle = open_checkpoint(beside / "tf1")
    plain = {name: bundle.read(name) for name in bundle.names() if AVERAGE not in name}
    write_bundle(tmp_path / "plain", plain)
    done = weights("import", "exchanged", "plain", "--to", "again", cwd=tmp_path)
    assert "no averages; they start as copies of the weights" in done.out
    assert same(stored(tmp_path / "again", "ema"), stored(tmp_path / "again", "model"))


@pytest.mark.parametrize("kind", ["run", "checkpoint", "safetensors", "tensorflow"])
def test_every_kind_of_file_is_shown(beside: Path, tmp_path: Path, kind: str) -> None:
    (checkpoint,) = (beside / "checkpoints").iterdir()
    path = {
        "run": beside,
        "checkpoint": checkpoint,
        "safetensors": checkpoint / "model.safetensors",
        "tensorflow": beside / "tf1" / "model.ckpt-2",
    }[kind]
    name = "head/dense/kernel" if kind == "tensorflow" else "classifier.weight"
    shape = [16, 10] if kind == "tensorflow" else [10, 16]
    table = weights("show", path, cwd=tmp_path).out.splitlines()
    row = next(line.split() for line in table if line.split()[0] == name)
    assert row == [name, "x".join(map(str, shape)), "float32"]
    listed = json.loads(weights("show", path, "--json", cwd=tmp_path).out)
    assert {"name": name, "shape": shape, "dtype": "float32"} in listed["tensors"]
    assert table[-1].startswith(f"{len(listed['tensors'])} tensors, {listed['numbers']:,} elements")
    assert len(table) == 1 + len(listed["tensors"])


def test_sharded_weights_are_shown_like_whole_ones(beside: Path, tmp_path: Path) -> None:
    (checkpoint,) = (beside / "checkpoints").iterdir()
    whole = load_file(checkpoint / "model.safetensors")
    split = "classifier.weight"
    low = {split: whole[split][:4]}
    high = {**whole, split: whole[split][4:]}
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, (tensors, start) in enumerate(((low, 0), (high, 4)), start=1):
        slices = {split: Slice(start=start, rows=10)}
        options = {"part": number, "parts": 2, "slices": slices}
        write_part(parts, "model.safetensors", tensors, **options)
    table = weights("show", parts, cwd=tmp_path).out.splitlines()
    expected = weights("show", checkpoint, cwd=tmp_path).out.splitlines()
    assert sorted(table[:-1]) == sorted(expected[:-1])
    assert table[-1].endswith("model.safetensors in 2 parts")
    assert table[-1].partition(":")[0] == expected[-1].partition(":")[0]
    assert weights("show", parts, "--verify", cwd=tmp_path).out.splitlines() == table
    settings = TransferSettings(start_from=str(parts / "model.safetensors"))
    assert weights_path(settings)[1] == parts / "model.safetensors"
    (parts / "model-00002-of-00002.safetensors").unlink()
    refused = weights("show", parts, cwd=tmp_path, code=2).message
    assert "model-00002-of-00002.safetensors" in refused


def test_missing_files_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "cut.safetensors").write_bytes(b"\xff" * 20)
    for name in ("none", "none/deep", "none.pb", "none.safetensors", "cut.safetensors"):
        assert name in weights("show", name, cwd=tmp_path, code=2).message
    unknown = ("import", "nothing", "none", "--to", "x")
    assert "none: there is no such checkpoint" in weights(*unknown, cwd=tmp_path, code=2).message


@pytest.mark.parametrize(
    "name", ["m.index", "m.data-00000-of-00001", "m.data-00001-of-00004", "m.meta", "checkpoint"]
)
def test_export_overwrites_no_file_of_another_checkpoint(
    beside: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"theirs")
    done = weights("export", beside, "--to", "tf1", "--out", "m", cwd=tmp_path, code=2)
    assert f"a checkpoint already exists: {name}" in done.message
    assert "Nothing was written" in done.message
    assert folder(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"theirs"


def test_export_coexists_with_files_of_other_names(beside: Path, tmp_path: Path) -> None:
    for name in ("m2.index", "m.txt", "am.index", "m.data-1"):
        (tmp_path / name).write_bytes(b"theirs")
    weights("export", beside, "--to", "tf1", "--out", "m", cwd=tmp_path)
    assert (tmp_path / "m2.index").read_bytes() == b"theirs"
    open_checkpoint(tmp_path / "m")


def test_export_into_the_run_is_repeatable_but_replaces_no_other_file(
    beside: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(beside, run)
    weights("export", run, "--to", "tf1", cwd=tmp_path)
    before = folder(run / "tf1")
    (run / "tf1" / "model.ckpt-2.meta").write_bytes(b"theirs")
    done = weights("export", run, "--to", "tf1", cwd=tmp_path, code=2)
    assert "a checkpoint already exists: model.ckpt-2.meta" in done.message
    assert folder(run / "tf1") == sorted([*before, "model.ckpt-2.meta"])


def test_checkpoint_without_values_is_listed_as_damaged(beside: Path, tmp_path: Path) -> None:
    shutil.copytree(beside / "tf1", tmp_path / "tf1")
    data = tmp_path / "tf1" / "model.ckpt-2.data-00000-of-00001"
    whole = data.read_bytes()
    data.write_bytes(whole[:-1])
    cut = weights("show", "tf1", cwd=tmp_path, code=2)
    assert "is truncated" in cut.message
    assert "global_step" in cut.out
    data.unlink()
    missing = weights("show", "tf1", cwd=tmp_path, code=2)
    assert "the data file with the variable" in missing.message
    assert data.name in missing.message
    as_json = weights("show", "tf1", "--json", cwd=tmp_path, code=2)
    assert len(json.loads(as_json.out)["tensors"]) == len(cut.out.splitlines()) - 1


def test_flipped_bit_is_found_when_values_are_verified(beside: Path, tmp_path: Path) -> None:
    shutil.copytree(beside / "tf1", tmp_path / "tf1")
    weights("show", "tf1", "--verify", cwd=tmp_path)
    data = tmp_path / "tf1" / "model.ckpt-2.data-00000-of-00001"
    values = bytearray(data.read_bytes())
    values[-1] ^= 1
    data.write_bytes(values)
    weights("show", "tf1", cwd=tmp_path)
    done = weights("show", "tf1", "--verify", cwd=tmp_path, code=2)
    assert "checksum" in done.message
