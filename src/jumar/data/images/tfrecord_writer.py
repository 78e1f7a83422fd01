"""ImageNet-style TFRecord shards from any image source.

Images are copied byte for byte: neither their format nor their colour model changes. Each is
decoded once before, because a truncated one would otherwise be noticed only in training.
"""

import gzip
import random
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import BinaryIO, Literal, cast

from jumar.data.images.image_shards import BACKGROUND, LABELS_FILE, read_class_names
from jumar.data.images.sources import (
    Notice,
    Split,
    check_pair,
    is_registered,
    open_source,
    splits_of,
)
from jumar.data.pixels.decode import DecodeError, check_decodable
from jumar.data.records.imagenet_example import example_of_record
from jumar.data.records.record_shards import check_shards
from jumar.data.records.tfrecord import framed_payload
from jumar.data.samples import CorruptRecord, ImageSource, Record
from jumar.ground.errors import UserError
from jumar.ground.files import folder_locked
from jumar.ground.machine import check_disk
from jumar.ground.paths import exists, expanded, is_file, is_folder, resolved, unwritable
from jumar.ground.text import counted

Prefix = Literal["train", "validation"]
Compression = Literal["none", "gzip"]
Progress = Callable[[int, int], None]
"""Called in the calling thread, twice a second, with the number of images written and the total."""

PREFIXES: dict[Split, Prefix] = {"train": "train", "eval": "validation"}
_ORDER_SEED = 0
_PROGRESS_INTERVAL_S = 0.5
_GZIP_LEVEL = 1
_RECORD_OVERHEAD = 600
_SIZE_SAMPLES = 64


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The files written for one part of a data set."""

    prefix: Prefix
    files: Sequence[Path]
    images: int
    bytes: int
    classes: Sequence[str]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class _Part:
    source: ImageSource
    prefix: Prefix
    shards: int


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options common to all parts of one conversion."""

    workers: int
    label_offset: int
    compression: Compression


def convert_to_tfrecords(
    path: str,
    destination: Path,
    *,
    shards: int,
    eval_shards: int | None = None,
    workers: int = 1,
    label_offset: int = 0,
    compression: Compression = "none",
    progress: Progress | None = None,
    notice: Notice = lambda _: None,
) -> Sequence[Summary]:
    """Write every part of a data set as TFRecord shards; an undivided one as `train`.

    Args:
        path: A path for `jumar.data.images.sources.open_source`.
        destination: Folder of the shards; created if it does not exist.
        shards: Number of training shards.
        eval_shards: Number of validation shards; None for shards as large as the training shards.
        workers: Number of threads that read and write.
        label_offset: 1 for labels from 1 with 0 as background, as in ImageNet; otherwise 0.
        compression: Compression of whole shards.
        progress: Called with the images written and their total over all parts.
        notice: Called with notices for the user.

    Raises:
        UserError: The destination is inside the source; see also `write_tfrecords`, `open_source`
            and `check_pair`.
    """
    _check_outside_source(path, destination)
    splits: Sequence[Split] = splits_of(path) or ("train",)
    sources: dict[Split, ImageSource] = {
        split: open_source(path, split, notice=notice) for split in splits
    }
    counts: dict[Split, int] = {"train": shards, "eval": eval_shards or shards}
    if eval_shards is None and len(sources) == 2:
        ratio = len(sources["eval"]) / max(1, len(sources["train"]))
        counts["eval"] = max(1, round(shards * ratio))
    parts = [
        _Part(source=source, prefix=PREFIXES[split], shards=counts[split])
        for split, source in sources.items()
    ]
    if len(parts) == 2:
        check_pair(parts[0].source, parts[1].source)
    options = _Options(workers=workers, label_offset=label_offset, compression=compression)
    return _write_parts(parts, destination, options, progress)


def write_tfrecords(
    source: ImageSource,
    destination: Path,
    *,
    shards: int,
    split_prefix: Prefix,
    workers: int = 1,
    label_offset: int = 0,
    compression: Compression = "none",
    progress: Progress | None = None,
) -> Summary:
    """Write an image source as `PREFIX-00000-of-0000N` shards and its classes as `labels.txt`.

    The images are put into one fixed random order, so that every shard has images of every class;
    the content of each file depends only on the source and `shards`. Shards are written into a
    hidden folder in the destination and moved when all are complete. After an error or Ctrl-C, that
    folder is removed; after a kill, the next call empties it.

    Args:
        source: The images, which are read from several threads at once.
        destination: Folder of the shards; created if it does not exist.
        shards: Number of files.
        split_prefix: Prefix of the file names.
        workers: Number of threads; each shard is written by one of them.
        label_offset: Added to the labels: 0 or 1. With 1, class 0 is named `background`.
        compression: `gzip` packs whole files and adds `.gz` to their names.
        progress: Called with the images written and their total.

    Raises:
        UserError: An image cannot be read, shards of this part already exist, their classes differ
            from those in `labels.txt`, or the disk is too small or full.
    """
    part = _Part(source=source, prefix=split_prefix, shards=shards)
    options = _Options(workers=workers, label_offset=label_offset, compression=compression)
    return _write_parts([part], destination, options, progress)[0]


def _write_parts(
    parts: Sequence[_Part], destination: Path, options: _Options, progress: Progress | None
) -> list[Summary]:
    for part in parts:
        _check_request(part, destination, options.label_offset)
    total, done_images = sum(len(part.source) for part in parts), 0
    summaries: list[Summary] = []
    try:
        with _temporary_folder(destination) as folder:
            _check_disk(parts, destination)
            for part in parts:
                job = _Job(part, options, folder, done_images, total)
                summaries.append(job.run(progress, destination))
                done_images += len(part.source)
            _move(folder, destination)
    except OSError as error:
        raise unwritable(destination, error, more="Nothing was written.") from error
    return summaries


def _check_outside_source(path: str, destination: Path) -> None:
    """Reject writing shards next to the source images, where they would be read instead of them."""
    if is_registered(path):
        return
    source, target = resolved(expanded(path)), resolved(expanded(destination))
    folder = source if is_folder(source) else source.parent
    # Shards may be next to a zip, but next to other shards a glob would match both sets.
    is_separate = source.suffix.lower() == ".zip" and is_file(source)
    if not is_separate and (target == folder or (is_folder(source) and folder in target.parents)):
        raise UserError(
            "the shards would be written into the data they are made from",
            where=str(destination),
            todo=f"Choose a folder outside {folder}, for instance {folder}-shards.",
        )


class _Job:
    """The threads that write one part, and their progress."""

    def __init__(
        self, part: _Part, options: _Options, folder: Path, done_before: int, total: int
    ) -> None:
        self._part = part
        self._options = options
        self._folder = folder
        self._done_before = done_before
        self._total = total
        self._names = _class_names(part.source, options.label_offset)
        self._stop = Event()
        self._done = [0] * part.shards
        self._order = list(range(len(part.source)))
        random.Random(_ORDER_SEED).shuffle(self._order)

    def run(self, progress: Progress | None, destination: Path) -> Summary:
        """Write all shards; on an error or Ctrl-C, stop the threads before re-raising."""
        part, start_s = self._part, time.monotonic()
        suffix = ".gz" if self._options.compression == "gzip" else ""
        names = [
            f"{part.prefix}-{number:05}-of-{part.shards:05}{suffix}"
            for number in range(part.shards)
        ]
        workers = max(1, min(self._options.workers, part.shards))
        with ThreadPoolExecutor(max_workers=workers) as pool:
            running: set[Future[None]] = {
                pool.submit(self._write_shard, number, self._folder / name)
                for number, name in enumerate(names)
            }
            try:
                while running:
                    finished, running = wait(running, _PROGRESS_INTERVAL_S, FIRST_EXCEPTION)
                    for future in finished:
                        future.result()
                    if progress:
                        progress(self._done_before + sum(self._done), self._total)
            except BaseException:
                self._stop.set()
                raise
        if self._names:
            lines = (f"{label}:{name}\n" for label, name in enumerate(self._names))
            (self._folder / LABELS_FILE).write_text(
                "".join(lines), encoding="utf-8", errors="surrogateescape"
            )
        return Summary(
            prefix=part.prefix,
            files=[destination / name for name in names],
            images=len(part.source),
            bytes=sum((self._folder / name).stat().st_size for name in names),
            classes=part.source.classes,
            seconds=time.monotonic() - start_s,
        )

    def _write_shard(self, number: int, path: Path) -> None:
        start, end = (len(self._order) * edge // self._part.shards for edge in (number, number + 1))
        with path.open("xb", buffering=2**20) as file, self._packed(file) as stream:
            for index in self._order[start:end]:
                if self._stop.is_set():
                    return
                stream.write(framed_payload(self._payload(index)))
                self._done[number] += 1

    @contextmanager
    def _packed(self, file: BinaryIO) -> Generator[BinaryIO, None, None]:
        if self._options.compression == "none":
            yield file
            return
        # Without name and time, since the same images must produce the same bytes.
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as stream:
            yield cast(BinaryIO, stream)

    def _payload(self, index: int) -> bytes:
        try:
            record = self._part.source.read(index)
            _check_pixels(record)
            return example_of_record(record, self._options.label_offset, self._names)
        except (CorruptRecord, ValueError) as error:
            fault = error.fault if isinstance(error, CorruptRecord) else None
            raise UserError(
                fault.reason if fault else str(error),
                where=fault.origin if fault else f"image {index}",
                todo="Repair or remove this image. Nothing was written.",
            ) from error


def _check_pixels(record: Record) -> None:
    try:
        check_decodable(record.encoded)
    except DecodeError as error:
        raise CorruptRecord(record.origin, f"unreadable image: {error}") from error


def _check_request(part: _Part, destination: Path, label_offset: int) -> None:
    source, prefix, shards = part.source, part.prefix, part.shards
    check_shards(shards)
    if shards > len(source):
        raise UserError(
            f"{counted(len(source), f'{prefix} image')} cannot fill {counted(shards, 'shard')}",
            where="--shards",
            todo=f"At most {len(source)}; a few hundred images per shard are usual.",
        )
    if label_offset not in (0, 1):
        raise UserError(f"the label offset cannot be {label_offset}", todo="Allowed: 0 or 1.")
    if exists(destination) and not is_folder(destination):
        raise UserError("is a file, not a folder", where=str(destination))
    if is_folder(destination):
        existing = sorted(path.name for path in destination.glob(f"{prefix}-*-of-*"))
        if existing:
            raise UserError(
                f"already contains {counted(len(existing), f'{prefix} shard')}, "
                f"such as '{existing[0]}'",
                where=str(destination),
                todo="Remove them, or choose another folder.",
            )
    names, earlier = _class_names(source, label_offset), read_class_names(destination / LABELS_FILE)
    if names and earlier and tuple(names) != earlier:
        raise UserError(
            f"lists {counted(len(earlier), 'class')}, not the {len(names)} of the images "
            "to be written",
            where=str(destination / LABELS_FILE),
            todo="Both parts need the same classes: choose another folder, or correct the classes.",
        )


def _class_names(source: ImageSource, label_offset: int) -> Sequence[str]:
    names = [BACKGROUND] * label_offset + list(source.classes) if source.classes else []
    for name in names:
        if "\n" in name or "\r" in name:
            raise UserError(f"the class name {name!r} has a line break", todo="Rename its folder.")
    return names


def _check_disk(parts: Sequence[_Part], destination: Path) -> None:
    needed_bytes = 0
    for part in parts:
        sizes = [_RECORD_OVERHEAD]
        for index in range(0, len(part.source), max(1, len(part.source) // _SIZE_SAMPLES)):
            with suppress(CorruptRecord):
                sizes.append(_RECORD_OVERHEAD + len(part.source.read(index).encoded))
        needed_bytes += sum(sizes) * len(part.source) // len(sizes)
    check_disk(needed_bytes, destination)


@contextmanager
def _temporary_folder(destination: Path) -> Generator[Path, None, None]:
    """Yield an empty hidden folder in the destination, locked by one process at a time.

    It is removed afterwards, with the destination if that was created here and stayed empty.
    """
    is_new = not exists(destination)
    destination.mkdir(parents=True, exist_ok=True)
    folder = destination / ".writing"
    folder.mkdir(exist_ok=True)
    with folder_locked(folder, "another process is writing shards there", destination):
        for leftover in folder.iterdir():
            leftover.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if is_new:
                with suppress(OSError):
                    destination.rmdir()


def _move(folder: Path, destination: Path) -> None:
    moved_files: list[Path] = []
    try:
        for path in sorted(folder.iterdir()):
            target = destination / path.name
            if not exists(target):
                moved_files.append(target)
            path.rename(target)
    except BaseException:
        for target in moved_files:
            target.unlink(missing_ok=True)
        raise
