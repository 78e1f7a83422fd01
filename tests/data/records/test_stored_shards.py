import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.images.image_set import LabelledPictures, image_set
from jumar.data.images.sources import open_source
from jumar.data.images.tfrecord_writer import convert_to_tfrecords
from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import train_batches
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.samples import ImageSource
from jumar.ground.errors import UserError
from jumar.stores import cache
from tests.stores.known import point_at
from tests.stores.servers import BUCKET, Server, every_tenth_fails, proxy, put_folder

PICTURES = 60


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for number in range(PICTURES):
        (folder / "source" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 255, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "source" / "ab"[number % 2] / f"{number}.png")
    convert_to_tfrecords(str(folder / "source"), folder / "shards", shards=4)
    return folder / "shards"


@pytest.fixture(scope="module")
def filled(store_server: Server, shards: Path) -> Server:
    put_folder(store_server, shards, "shards")
    return store_server


@pytest.fixture
def environment(filled: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_at(filled, monkeypatch, tmp_path)


def digest(source: ImageSource) -> str:
    content = hashlib.sha256()
    for index in range(len(source)):
        record = source.read(index)
        content.update(record.encoded + bytes([record.label]))
    return content.hexdigest()


def samples(source: ImageSource, workers: int) -> str:
    kind = LabelledPictures(
        source=source,
        preprocessing=ImagePreprocessing(),
        image_size=16,
        num_classes=3,
        training=True,
    )
    content, tally = hashlib.sha256(), FaultTally(0)
    steps = train_batches(
        image_set(kind),
        seed=1,
        batch_per_rank=16,
        first_step=0,
        last_step=6,
        workers=workers,
        tally=tally,
    )
    for batch in steps:
        content.update(batch["image"].numpy().tobytes() + batch["label"].numpy().tobytes())
    return content.hexdigest()


def cached_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.usefixtures("environment")
def test_shards_in_a_store_give_the_samples_classes_and_fingerprint_of_the_disk(
    shards: Path,
) -> None:
    disk = open_source(str(shards), "train")
    store = open_source(f"s3://{BUCKET}/shards", "train")
    assert digest(store) == digest(disk)
    assert store.classes == disk.classes == ("a", "b")
    assert getattr(store, "fingerprint") == getattr(disk, "fingerprint")  # noqa: B009


@pytest.mark.usefixtures("environment")
def test_a_pattern_and_one_shard_are_taken_by_their_names(shards: Path) -> None:
    notices: list[str] = []
    url = f"s3://{BUCKET}/shards/train-0000[01]-*"
    some = open_source(url, "train", notice=notices.append)
    assert digest(some) == digest(open_source(str(shards / "train-0000[01]-*"), "train"))
    assert any("2 of 4 shards" in line for line in notices)
    one = open_source(f"s3://{BUCKET}/shards/train-00003-of-00004", "train")
    assert digest(one) == digest(open_source(str(shards / "train-00003-of-00004"), "train"))


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("workers", [0, 2])
def test_what_exceeds_the_cache_is_read_record_by_record(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    sizes = [path.stat().st_size for path in shards.glob("train-*")]
    limit = max(sizes) + sum(sizes) // 64 + 200
    monkeypatch.setenv(cache.LIMIT_VARIABLE, str(limit))
    notices: list[str] = []
    source = open_source(f"s3://{BUCKET}/shards", "train", notice=notices.append)
    assert any("3 of 4 shards" in line for line in notices)
    assert samples(source, workers) == samples(open_source(str(shards), "train"), 0)
    assert 0 < cached_bytes(tmp_path / "cache") <= limit + 100  # the cache's notes on itself


def test_one_failing_request_in_ten_changes_no_sample(
    filled: Server, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = samples(open_source(str(shards), "train"), 0)
    with proxy(filled, every_tenth_fails) as failing:
        for limit in ("1GB", "1kB"):
            point_at(failing, monkeypatch, tmp_path / limit)
            monkeypatch.setenv(cache.LIMIT_VARIABLE, limit)
            source = open_source(f"s3://{BUCKET}/shards", "train")
            assert samples(source, 2) == expected
        assert len(failing.requests) > 60


def test_a_store_that_dies_ends_the_reading_and_skips_no_sample(
    filled: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(filled, lambda handler, number: number > 30 and (handler.drop() or True)) as dying:
        point_at(dying, monkeypatch, tmp_path)
        monkeypatch.setenv(cache.LIMIT_VARIABLE, "1kB")
        monkeypatch.setenv("JUMAR_STORE_PATIENCE", "0.5")
        source = open_source(f"s3://{BUCKET}/shards", "train")
        with pytest.raises(UserError, match="does not answer as it should"):
            samples(source, 1)


@pytest.mark.usefixtures("environment")
def test_missing_shards_are_named_with_their_url(
    filled: Server, shards: Path, tmp_path: Path
) -> None:
    (tmp_path / "part").mkdir()
    for path in sorted(shards.iterdir())[:3]:
        (tmp_path / "part" / path.name).write_bytes(path.read_bytes())
    put_folder(filled, tmp_path / "part", "part")
    with pytest.raises(UserError, match="of 4 shards exist") as raised:
        open_source(f"s3://{BUCKET}/part", "train")
    assert raised.value.where == f"s3://{BUCKET}/part"
