import gzip
import hashlib
from dataclasses import replace
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
from jumar.data.records.record_shards import RecordShards
from jumar.data.records.stored_shards import StoredFiles, index_stored, list_shards
from jumar.data.records.tfrecord import index_many
from jumar.data.samples import ImageSource
from jumar.ground.errors import UserError
from jumar.ground.text import size_text
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
def test_shards_in_a_store_give_the_same_samples_classes_and_fingerprint_as_on_disk(
    shards: Path,
) -> None:
    disk = open_source(str(shards), "train")
    store = open_source(f"s3://{BUCKET}/shards", "train")
    assert digest(store) == digest(disk)
    assert store.classes == disk.classes == ("a", "b")
    assert getattr(store, "fingerprint") == getattr(disk, "fingerprint")  # noqa: B009


@pytest.mark.usefixtures("environment")
def test_pattern_and_single_shard_select_by_name(shards: Path) -> None:
    notices: list[str] = []
    url = f"s3://{BUCKET}/shards/train-0000[01]-*"
    some = open_source(url, "train", notice=notices.append)
    assert digest(some) == digest(open_source(str(shards / "train-0000[01]-*"), "train"))
    assert any("2 of 4 shards" in line for line in notices)
    one = open_source(f"s3://{BUCKET}/shards/train-00003-of-00004", "train")
    assert digest(one) == digest(open_source(str(shards / "train-00003-of-00004"), "train"))


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("workers", [0, 2])
def test_shards_exceeding_the_cache_are_read_record_by_record(
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


def test_failing_one_request_in_ten_changes_no_sample(
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


def test_store_that_dies_ends_reading_without_skipping_samples(
    filled: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(filled, lambda handler, number: number > 30 and (handler.drop() or True)) as dying:
        point_at(dying, monkeypatch, tmp_path)
        monkeypatch.setenv(cache.LIMIT_VARIABLE, "1kB")
        monkeypatch.setenv("JUMAR_STORE_PATIENCE", "0.5")
        source = open_source(f"s3://{BUCKET}/shards", "train")
        with pytest.raises(UserError, match="has not responded correctly"):
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


URL = f"s3://{BUCKET}/shards"
NAMES = [f"train-{number:05}-of-00004" for number in range(4)]


def is_shard(name: str) -> bool:
    return name.startswith("train-")


@pytest.mark.usefixtures("environment")
def test_url_names_a_folder_one_shard_or_a_pattern(shards: Path) -> None:
    everything = {path.name: path.stat().st_size for path in shards.iterdir()}
    assert set(NAMES) < set(everything)

    def listed(url: str) -> tuple[str, list[str], bool] | None:
        listing = list_shards(url, is_shard)
        if listing is None:
            return None
        assert {name: each.size for name, each in listing.objects.items()} == everything
        assert listing.paths == [Path(URL) / name for name in listing.names]
        return str(listing.location), list(listing.names), listing.is_chosen

    assert listed(URL) == (URL, NAMES, False)
    assert listed(f"{URL}/{NAMES[2]}") == (URL, [NAMES[2]], True)
    assert listed(f"{URL}/train-0000[12]-*") == (URL, NAMES[1:3], True)
    (other,) = set(everything) - set(NAMES)
    assert listed(f"{URL}/{other}") is None
    assert list_shards(URL, lambda _: False) is None

    def refused(url: str) -> str:
        with pytest.raises(UserError) as error:
            list_shards(url, is_shard)
        return str(error.value)

    assert refused(f"s3://{BUCKET}/sh*/train-*") == (
        f"s3://{BUCKET}/sh*/train-*: only the last part may be a pattern"
    )
    assert refused(f"{URL}/none-*") == f"{URL}/none-*: no object matches"
    assert refused(f"{URL}/*") == (
        f"{URL}/*: matches '{other}', which is not the name of a TFRecord file\n"
        "  A pattern must match only TFRecord shards."
    )


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("lacking", [0, 1])
def test_shards_are_cached_while_they_fit_and_the_index_uses_the_rest(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: int
) -> None:
    listing = list_shards(URL, is_shard)
    assert listing is not None
    (other,) = set(listing.objects) - set(NAMES)
    sizes = {name: listing.objects[name].size for name in (other, *NAMES)}
    whole = sum(sizes.values())
    monkeypatch.setenv(cache.LIMIT_VARIABLE, str(whole - lacking))
    notices: list[str] = []
    opened = listing.opened(listing.paths, notices.append, companions=[other, "none"])
    room = whole - lacking - (whole // 64 if lacking else 0)
    cached: list[str] = []
    for name, size in sizes.items():
        if size <= room:
            cached.append(name)
            room -= size
    far = [name for name in NAMES if name not in cached]
    assert len(far) == lacking
    assert sorted(path.name for path in opened.folder.iterdir()) == sorted(cached)
    assert list(opened.remote) == [opened.folder / name for name in far]
    assert opened.free_bytes == whole - lacking - sum(sizes[name] for name in cached)
    missing = sum(sizes[name] for name in far)
    assert (
        notices
        == [
            f"{URL}: 1 of 4 shards ({size_text(missing)}) do not fit into the cache of at most "
            f"{size_text(whole - 1)}; their records are read from the store when needed"
        ]
        * lacking
    )
    paths = [opened.folder / name for name in NAMES]
    expected = index_many([shards / name for name in NAMES], NAMES)
    for _ in range(2):  # the second time from what was kept of the first
        result = index_stored(opened, paths, NAMES)
        for ours, theirs in zip(result, expected, strict=True):
            assert ours.offsets.tolist() == theirs.offsets.tolist()
            assert ours.lengths.tolist() == theirs.lengths.tolist()
    kept = list(opened.index_folder.glob(f"{cache.OWN_PREFIX}index-*.npy"))
    assert len(kept) == lacking
    if lacking:
        # What is kept is used.
        other_index = np.array([[7, 8], [1, 2]])
        np.save(kept[0], other_index)
        changed = index_stored(opened, paths, NAMES)[NAMES.index(far[0])]
        assert [changed.offsets.tolist(), changed.lengths.tolist()] == other_index.tolist()
        kept[0].unlink()
        # 16 bytes a record, and 256.
        records = len(expected[NAMES.index(far[0])])
        for least, there in ((16 * records + 255, 0), (16 * records + 256, 1)):
            index_stored(replace(opened, free_bytes=least), paths, NAMES)
            assert len(list(opened.index_folder.glob(f"{cache.OWN_PREFIX}index-*.npy"))) == there


@pytest.mark.usefixtures("environment")
def test_compressed_shard_that_does_not_fit_is_refused(
    filled: Server, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packed").mkdir()
    packed = gzip.compress((shards / NAMES[0]).read_bytes(), mtime=0)
    (tmp_path / "packed" / NAMES[0]).write_bytes(packed)
    put_folder(filled, tmp_path / "packed", "packed")
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "1kB")
    url = f"s3://{BUCKET}/packed"
    listing = list_shards(url, is_shard)
    assert listing is not None
    with pytest.raises(UserError) as error:
        listing.opened(listing.paths, print, companions=[])
    assert str(error.value) == (
        f"{url}/{NAMES[0]}: this shard does not fit into the cache, and is compressed or not a "
        "TFRecord, so its records cannot be read individually\n"
        "  Set JUMAR_CACHE_LIMIT to more than the size of the shards, or store them uncompressed."
    )


@pytest.mark.usefixtures("environment")
def test_files_on_disk_and_in_a_store_are_read_alike(shards: Path) -> None:
    listing = list_shards(URL, is_shard)
    assert listing is not None
    contents = [(shards / name).read_bytes() for name in NAMES[:2]]
    here, there = shards / NAMES[0], Path("there") / NAMES[1]
    files = StoredFiles([here, there], {there: listing.objects[NAMES[1]]})
    asked = [(1, 5, 20), (0, 3, 9), (1, 100, 3), (1, 5, 20), (1, 0, 256 * 2**20 + 1)]
    files.read_ahead(asked)
    assert sorted(files._ahead) == [(1, 5, 20), (1, 100, 3)]
    for which, offset, length in asked[:4]:
        assert files.read(which, offset, length) == contents[which][offset : offset + length]
    assert files._ahead == {}
    # Beyond the end there is nothing.
    end = len(contents[1])
    assert files.read(1, end - 4, 10) == contents[1][-4:]
    files.read_ahead([(1, end - 2, 10), (1, 7, 256 * 2**20)])
    assert files.read(1, end - 2, 10) == contents[1][-2:]
    assert files.read(1, 7, 256 * 2**20) == contents[1][7:]


@pytest.mark.usefixtures("environment")
def test_records_in_a_store_are_prefetched_by_offset(
    shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "1kB")
    listing = list_shards(URL, is_shard)
    assert listing is not None
    opened = listing.opened(listing.paths, lambda _: None, companions=[])
    paths = [opened.folder / name for name in NAMES]
    stored = RecordShards(paths, print, rewrite_command="", stored=opened)
    disk = RecordShards([shards / name for name in NAMES], print, rewrite_command="")
    assert stored.fingerprint == disk.fingerprint
    items = [0, 14, 15, PICTURES - 1]
    stored.read_ahead(items)
    assert isinstance(stored._files, StoredFiles)
    assert len(stored._files._ahead) == 4
    for item in items:
        payload, origin = disk.payload(item)
        assert stored.payload(item) == (payload, origin.replace(str(shards), URL))
    # Every one was there already.
    assert not stored._files._ahead
    assert stored.payload(1)[0] == disk.payload(1)[0]
