"""Training through the command line from every kind of data, and what stops it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.in_process import Done, here, settings, train
from tests.data.pictures import MIXED, pets, picture, write_files, write_zip

FEW = settings(training__duration="1it")
EPOCH = settings(training__duration="1ep")
BROKEN = picture()[:200]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """12 images to learn from and 4 to score on, of two classes."""
    parts = {"train": pets(6), "val": pets(2)}
    return write_files(
        tmp_path / "pets",
        {f"{part}/{name}": data for part, files in parts.items() for name, data in files.items()},
    )


@pytest.fixture
def shards(folder: Path, tmp_path: Path) -> Path:
    """The same as TFRecord, one shard a part."""
    here("data", "tfrecord", folder, "--to", "shards", "--shards", "1", cwd=tmp_path)
    return tmp_path / "shards"


def results(run: Path) -> dict[str, object]:
    return json.loads((run / "results.json").read_text())


def on(path: Path | str, *more: str, cwd: Path, code: int = 0, **values: object) -> Done:
    """Train the small recipe on data in the run directory `run`."""
    options = settings(data__path=path, **values)
    return train("--run-dir", "run", *options, *more, cwd=cwd, code=code)


def train_losses(run: Path) -> list[float]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    return [record["loss"] for record in records if record["kind"] == "train"]


def test_trains_on_a_folder_a_zip_and_shards_of_the_same_images(
    folder: Path, shards: Path, tmp_path: Path
) -> None:
    def files(part: str) -> dict[str, bytes]:
        paths = sorted((folder / part).rglob("*.jpg"))
        return {str(path.relative_to(folder / part)): path.read_bytes() for path in paths}

    pair = tmp_path / "pair"
    for part in ("train", "val"):
        write_zip(pair / f"{part}.zip", files(part))
    whole = {
        f"all/{part}/{name}": data
        for part in ("train", "val")
        for name, data in files(part).items()
    }
    one = write_zip(tmp_path / "one.zip", whole)
    packed = tmp_path / "packed"
    compressed = ("--compression", "gzip", "--shards", "2")
    here("data", "tfrecord", pair, "--to", packed, *compressed, cwd=tmp_path)
    losses: dict[str, list[float]] = {}
    for number, path in enumerate((folder, pair, one, shards, packed)):
        run = f"run{number}"
        train("--run-dir", run, *settings(data__path=path), *EPOCH, cwd=tmp_path)
        assert results(tmp_path / run)["eval_samples"] == 4
        losses[path.name] = train_losses(tmp_path / run)
    assert losses["pets"] == losses["pair"] == losses["one.zip"]
    assert all(len(result) == 3 for result in losses.values())


def test_real_signs_in_a_pair_of_zips(shared: Path, tmp_path: Path) -> None:
    done = on(shared / "data" / "sign-digits-100px", *FEW, cwd=tmp_path)
    assert "1559 samples" in done.out
    assert results(tmp_path / "run")["eval_samples"] == 300


def test_jpeg_png_grey_cmyk_and_turned_images_in_one_folder(folder: Path, tmp_path: Path) -> None:
    write_files(folder / "train" / "cat", MIXED)
    write_files(folder / "val" / "horse", MIXED)
    on(folder, *EPOCH, cwd=tmp_path, data__batch_size=19)
    assert results(tmp_path / "run")["eval_samples"] == 4 + len(MIXED)


@pytest.mark.parametrize(
    ("recipe", "changed"),
    [
        ("alexnet", {"model__num_classes": 1000, "data__label_offset": -1, "data__image_size": 63}),
        ("resnext50", {"model__num_classes": 1001, "data__image_size": 32}),
    ],
)
def test_imagenet_shards_train_with_the_labels_of_each_network(
    parity: Path, tmp_path: Path, recipe: str, changed: dict[str, object]
) -> None:
    options = settings(
        data__path=parity / "formats" / "imagenet",
        data__eval_path="none",
        data__batch_size=2,
        training__duration="1it",
        **changed,
    )
    done = here("train", recipe, "--device", "cpu", "--dry-run", *options, cwd=tmp_path)
    assert "13 samples" in done.out


def test_every_imagenet_shard_record_is_used_in_training(parity: Path, tmp_path: Path) -> None:
    path = parity / "formats" / "imagenet"
    on(
        path,
        *EPOCH,
        cwd=tmp_path,
        data__eval_path="none",
        data__batch_size=13,
        model__num_classes=1001,
    )
    assert len(train_losses(tmp_path / "run")) == 1


def test_run_without_evaluation_data_trains_but_cannot_be_evaluated(
    folder: Path, tmp_path: Path
) -> None:
    on(folder / "train", *FEW, cwd=tmp_path, data__eval_path="none")
    assert results(tmp_path / "run")["metrics"] == {}
    done = here("evaluate", "run", "--device", "cpu", cwd=tmp_path, code=2)
    assert "data.eval_path: there is no data to evaluate on" in done.err
    there = here("evaluate", "run", *settings(data__eval_path=folder / "val"), cwd=tmp_path)
    assert "evaluation data: 4 samples" in there.out


def flipped(payload: bytearray) -> None:
    payload[len(payload) // 2] ^= 1


def cut_short(payload: bytearray) -> None:
    del payload[-30:]


def damage(shards: Path, change: Callable[[bytearray], None]) -> Path:
    file = shards / "train-00000-of-00001"
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(bytes(content))
    return file


def nothing_left(cwd: Path) -> bool:
    return not (cwd / "run").exists()


def test_empty_class_folder_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "train" / "dog").mkdir()
    done = on(folder, cwd=tmp_path, code=2)
    assert f"{folder / 'train'}: 1 of 3 class folders contains no image: 'dog'" in done.err
    assert nothing_left(tmp_path)


def test_more_classes_than_model_outputs_are_refused(folder: Path, tmp_path: Path) -> None:
    done = on(folder, cwd=tmp_path, code=2, model__num_classes=1)
    assert "the data has 2 classes" in done.err
    assert "the model has 1 output" in done.err
    assert nothing_left(tmp_path)


def test_folder_with_different_evaluation_classes_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "val" / "cat")
    done = on(folder, cwd=tmp_path, code=2)
    assert "only in training cat" in done.err
    assert nothing_left(tmp_path)


def test_truncated_shard_is_refused_with_file_and_offset(shards: Path, tmp_path: Path) -> None:
    file = damage(shards, cut_short)
    done = on(shards, cwd=tmp_path, code=2)
    assert f"{file}, byte " in done.err
    assert "the file ends inside a record" in done.err
    assert nothing_left(tmp_path)


def test_flipped_bit_stops_the_run_at_its_record_before_its_update(
    shards: Path, tmp_path: Path
) -> None:
    on(shards, *EPOCH, cwd=tmp_path, data__batch_size=1)
    whole = train_losses(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    file = damage(shards, flipped)
    done = on(shards, *EPOCH, cwd=tmp_path, code=2, data__batch_size=1)
    assert f"{file}, byte " in done.err
    assert "the checksum of its" in done.err
    before = train_losses(tmp_path / "run")
    assert 0 < len(before) < len(whole)
    assert before == whole[: len(before)]
    # What was learned before it is kept, and nothing else.
    kept = [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert kept == [f"step-{len(before):08d}"]
    assert f"training up to step {len(before)} is saved" in done.err
    again = here("train", "--resume", "--run-dir", "run", "--skip-corrupt", "1", cwd=tmp_path)
    assert f"resuming from step {len(before)}" in again.out
    assert len(train_losses(tmp_path / "run")) == len(whole)


def test_unreadable_image_in_the_first_batch_leaves_no_files(folder: Path, tmp_path: Path) -> None:
    for file in (folder / "train" / "cat").iterdir():
        file.write_bytes(BROKEN)
    done = on(folder, cwd=tmp_path, code=2, data__batch_size=12)
    assert "6 unreadable samples, more than the 0 allowed" in done.err
    assert nothing_left(tmp_path)


def test_out_of_range_label_is_named_with_file_and_offset(shards: Path, tmp_path: Path) -> None:
    (shards / "labels.txt").unlink()
    done = on(shards, cwd=tmp_path, code=2, model__num_classes=1, data__batch_size=12)
    assert f"{shards / 'train-00000-of-00001'}, byte " in done.err
    assert "label 1 is not within 0 to 0" in done.err
    assert nothing_left(tmp_path)


def test_wrong_label_offset_is_reported_as_a_label_out_of_range(
    parity: Path, tmp_path: Path
) -> None:
    path = parity / "formats" / "imagenet"
    done = on(
        path,
        cwd=tmp_path,
        code=2,
        data__eval_path="none",
        data__batch_size=13,
        model__num_classes=1000,
    )
    assert "label 1000 is not within 0 to 999" in done.err
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("workers", [0, 1])
def test_corrupt_images_stop_the_run_or_are_counted_and_listed(
    folder: Path, tmp_path: Path, workers: int
) -> None:
    broken = [folder / "train" / "cat" / "0.jpg", folder / "val" / "horse" / "1.jpg"]
    for file in broken:
        file.write_bytes(BROKEN)
    options = {"data__workers": workers, "data__batch_size": 4}
    done = on(folder, *EPOCH, cwd=tmp_path, code=2, **options)
    assert str(broken[0]) in done.err
    assert "--skip-corrupt N" in done.err
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    done = on(folder, *EPOCH, "--skip-corrupt", "3", cwd=tmp_path, **options)
    assert "skipped 2 unreadable samples:" in done.out
    listed = results(tmp_path / "run")["unreadable_samples"]
    assert isinstance(listed, list)
    assert [line.partition(": ")[0] for line in listed] == [str(file) for file in broken]
    assert all(done.out.count(line) == 2 for line in listed)
    assert results(tmp_path / "run")["eval_samples"] == 3
    again = here("evaluate", "run", "--device", "cpu", cwd=tmp_path)
    assert "evaluation data: 3 samples" in again.out
    strict = here("evaluate", "run", "--skip-corrupt", "0", cwd=tmp_path, code=2)
    assert str(broken[1]) in strict.err


def test_too_many_unreadable_samples_end_the_last_evaluation_not_the_training(
    folder: Path, tmp_path: Path
) -> None:
    for file in (folder / "val" / "cat").iterdir():
        file.write_bytes(BROKEN)
    done = on(folder, *EPOCH, "--skip-corrupt", "1", cwd=tmp_path, code=2)
    assert "2 unreadable samples, more than the 1 allowed" in done.err
    assert "training up to step 3 is saved" in done.err
    on_again = here("train", "--resume", "--run-dir", "run", "--skip-corrupt", "2", cwd=tmp_path)
    assert "evaluation at step 3" in on_again.out
    assert results(tmp_path / "run")["state"] == "finished"


def test_fully_unreadable_evaluation_set_is_an_error(folder: Path, tmp_path: Path) -> None:
    for file in (folder / "val").rglob("*.jpg"):
        file.write_bytes(BROKEN)
    done = on(folder, *FEW, "--skip-corrupt", "9", cwd=tmp_path, code=2)
    assert "none of the 4 evaluation samples can be read" in done.err


MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "no such path": ({"data__path": "nowhere"}, "nowhere: there is no such file or folder"),
    "no such evaluation path": ({"data__eval_path": "nix"}, "nix: there is no such file"),
    "the same images twice": (
        {"data__path": "pets/train", "data__eval_path": "./pets/../pets/train"},
        "evaluation would use the training images",
    ),
    "a store of another kind": (
        {"data__path": "gs://bucket/x"},
        "paths of this kind cannot be read",
    ),
    "a batch larger than the set": (
        {"data__batch_size": 13},
        "larger than the training set of 12 samples",
    ),
    "no length": ({"training__duration": "0it"}, "a run of 0it trains nothing"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_the_data_is_named_and_leaves_no_files(
    folder: Path, tmp_path: Path, name: str
) -> None:
    values, message = MISTAKES[name]
    options = settings(**{"data__path": folder, **values})
    done = train("--run-dir", "run", *options, cwd=tmp_path, code=2)
    assert message in done.err
    assert nothing_left(tmp_path)
