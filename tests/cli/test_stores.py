from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.images.tfrecord_writer import convert_to_tfrecords
from jumar.stores.client import client_of
from jumar.stores.location import parse
from jumar.stores.uploading import Outgoing
from jumar.training.run_directory import RunDirectory
from tests.cli.in_process import any_end, here, settings, train
from tests.stores.known import forget, point_at
from tests.stores.servers import BUCKET, SECRET, Dies, Server, every_tenth_fails, proxy, put_folder


@pytest.fixture
def place(store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URL in which there is nothing."""
    point_at(store_server, monkeypatch, tmp_path)
    return f"s3://{BUCKET}/{tmp_path.name}"


def on_another_machine(store: Server, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    point_at(store, monkeypatch, folder)
    return folder / "cache"


def keys(url: str) -> list[str]:
    location = parse(url)
    return [
        each.location.key[len(location.key) + 1 :] for each in client_of(location).list(location)
    ]


def weights(run: Path) -> bytes:
    newest = sorted((run / "checkpoints").glob("step-*"))[-1]
    return (newest / "model.safetensors").read_bytes()


def test_run_in_a_store_resumes_on_a_fresh_machine_as_if_uninterrupted(
    place: str, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = settings(training__duration="4it")
    train("--run-dir", tmp_path / "here", *settings(training__duration="2it"), cwd=tmp_path)
    train("--run-dir", tmp_path / "here", *longer, cwd=tmp_path)
    done = train("--run-dir", f"{place}/run", *settings(training__duration="2it"), cwd=tmp_path)
    assert "mirrored from there" in done.err
    assert {"recipe.json", "results.json", "manifest.json"} <= set(keys(f"{place}/run"))
    assert "owner.json" not in keys(f"{place}/run")
    cache = on_another_machine(store_server, monkeypatch, tmp_path / "other")
    resumed = train("--run-dir", f"{place}/run", *longer, cwd=tmp_path)
    assert "resuming from step 2" in resumed.out
    there = cache / "runs" / "s3" / BUCKET / tmp_path.name / "run"
    assert weights(there) == weights(tmp_path / "here")
    assert RunDirectory(there).resume_command("cpu").split()[4] == f"{place}/run"
    point_at(store_server, monkeypatch, tmp_path / "third")
    scores = here(
        "evaluate", f"{place}/run", "--import", "tests.cli.small_recipe", cwd=tmp_path
    ).out
    assert "       4 " in scores
    shown = here("weights", "show", f"{place}/run", cwd=tmp_path)
    assert "classifier.weight" in shown.out


def test_shards_in_a_flaky_store_give_the_same_weights_as_on_disk(
    place: str, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    for part, number in [("train", n) for n in range(24)] + [("val", n) for n in range(6)]:
        folder = tmp_path / "pictures" / part / f"class-{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 255, (20, 20, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    convert_to_tfrecords(str(tmp_path / "pictures"), tmp_path / "shards", shards=2)
    put_folder(store_server, tmp_path / "shards", f"{tmp_path.name}/shards")
    put_folder(store_server, tmp_path / "pictures", f"{tmp_path.name}/pictures")
    common = settings(training__duration="4it", data__workers=1)
    train(*common, "--set", f"data.path={tmp_path / 'shards'}", "--run-dir", "disk", cwd=tmp_path)
    train(
        *common, "--set", f"data.path={tmp_path / 'pictures'}", "--run-dir", "folder", cwd=tmp_path
    )
    with proxy(store_server, every_tenth_fails) as failing:
        point_at(failing, monkeypatch, tmp_path)
        monkeypatch.setenv("JUMAR_CACHE_LIMIT", "3kB")
        url = f"data.path={place}/shards"
        done = train(*common, "--set", url, "--run-dir", "store", cwd=tmp_path)
        assert "do not fit into the cache" in done.out
        monkeypatch.delenv("JUMAR_CACHE_LIMIT")
        url = f"data.path={place}/pictures"
        train(*common, "--set", url, "--run-dir", "folder-in-store", cwd=tmp_path)
    assert weights(tmp_path / "store") == weights(tmp_path / "disk")
    assert weights(tmp_path / "folder-in-store") == weights(tmp_path / "folder")
    assert place in (tmp_path / "store" / "recipe.json").read_text()
    assert SECRET not in (tmp_path / "store" / "recipe.json").read_text()
    forget()


def test_failing_mirror_does_not_stop_the_training_but_is_reported_at_the_end(
    place: str, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_STORE_PATIENCE", "0.1")
    with proxy(store_server, Dies(9)) as dying:
        point_at(dying, monkeypatch, tmp_path)
        with pytest.raises(AssertionError, match="this run is not completely in the store"):
            # The harness wants a message alone, where the training has been through before it.
            train("--run-dir", f"{place}/run", cwd=tmp_path, code=2)
    local = tmp_path / "cache" / "runs" / "s3" / BUCKET / tmp_path.name / "run"
    results = RunDirectory(local).read_results()
    assert results is not None
    assert results["state"] == "finished"
    monkeypatch.setenv("JUMAR_STORE_LEASE", "0.2")
    point_at(store_server, monkeypatch, tmp_path)
    again = train("--run-dir", f"{place}/run", cwd=tmp_path)
    assert "is finished" in again.out
    assert "results.json" in keys(f"{place}/run")


def test_mistakes_leave_nothing_in_the_store(place: str, tmp_path: Path) -> None:
    train("--run-dir", f"{place}/run", "--dry-run", cwd=tmp_path)
    assert keys(place) == []
    with pytest.raises(AssertionError, match="unknown field"):
        train("--run-dir", f"{place}/run", "--set", "optimizer.lr=1", cwd=tmp_path, code=2)
    assert keys(place) == []


def test_output_is_uploaded_and_not_mixed_with_existing_objects(place: str, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text("import tensorflow as tf\nx = tf.Session()\n")
    done = here("port", "scripts", "--to", f"{place}/ported", cwd=tmp_path)
    assert "written to" in done.err
    assert "train.py" in keys(f"{place}/ported")
    refused = any_end("port", "scripts", "--to", f"{place}/ported", cwd=tmp_path)
    assert refused.code == 2
    assert "already exists and contains objects" in refused.err
    linted = any_end("port", "lint", f"{place}/ported", cwd=tmp_path)
    assert linted.code == 0
    assert "Scripts: 1" in linted.out


def test_file_is_uploaded_with_those_written_next_to_it(place: str) -> None:
    target = parse(f"{place}/model.onnx")
    with Outgoing() as outgoing:
        local = outgoing.place(target)
        local.write_text("graph")
        (local.parent / "model.onnx.tokenizer").mkdir()
        (local.parent / "model.onnx.tokenizer" / "vocab.txt").write_text("a")
        assert "2 files" in outgoing.upload(target, local)
    assert sorted(keys(place)) == ["model.onnx", "model.onnx.tokenizer/vocab.txt"]


def test_outputs_that_grow_for_hours_are_refused_with_a_remedy(place: str, tmp_path: Path) -> None:
    done = any_end("sweep", "small", f"--to={place}/sweep", cwd=tmp_path)
    assert done.code == 2
    assert "cannot be in a store" in done.message


def test_urls_that_a_command_only_records_are_left_alone(tmp_path: Path) -> None:
    modelarts = ["--on", "modelarts", "--device", "npu", "--devices", "1", "--image", "a/b:1"]
    urls = ["--flavor", "f", "--obs", "obs://bucket/cats", "--data", "obs://bucket/digits"]
    done = here("launch", "alexnet-demo", *modelarts, *urls, "--to", "there", cwd=tmp_path)
    assert "obs://bucket/cats/code" in done.out
