"""`jumar data tfrecord` and `jumar data keywords`."""

from pathlib import Path
from typing import Literal

from cyclopts import App

from jumar.errors import UserError
from jumar.host import checked_count, usable_cores

app = App(name="data", help="Prepare data sets.")


@app.command
def tfrecord(
    source: str,
    /,
    *,
    to: Path,
    shards: int = 8,
    eval_shards: int | None = None,
    workers: int | None = None,
    label_offset: int = 0,
    compression: Literal["none", "gzip"] = "none",
) -> int:
    """Write ImageNet-style TFRecord shards from class folders or zips of them.

    The folder is written whole or not at all; the same source and number of shards give the same
    bytes.

    Parameters
    ----------
    source
        A folder or zip of class folders, or a folder with train and val in it.
    to
        Folder of the shards.
    shards
        Number of training shards.
    eval_shards
        Number of validation shards; by default in proportion to the images.
    workers
        Threads; by default one a processor.
    label_offset
        Added to the labels: 1 leaves label 0 to the background, as ImageNet's shards do.
    compression
        none or gzip.
    """
    from jumar.data.images.tfrecord_writer import convert_to_tfrecords
    from jumar.training.progress import Console

    console = Console()
    with console.bar("images", 1) as bar:
        written = convert_to_tfrecords(
            source,
            to,
            shards=shards,
            eval_shards=eval_shards,
            workers=_checked_workers(workers, "threads"),
            label_offset=label_offset,
            compression=compression,
            progress=bar.show_of,
            notice=console.line,
        )
    for part in written:
        console.line(
            f"{part.prefix}: {part.images} images of {len(part.classes)} classes in "
            f"{len(part.files)} shards, {part.bytes / 1e6:.1f} MB, {part.seconds:.1f} s: {to}"
        )
    return 0


@app.command
def keywords(
    *,
    to: Path,
    words: str = "yes,no,up,down,left,right,on,off,stop,go",
    clips: int = 6_000,
    eval_clips: int | None = None,
    seed: int = 1,
    workers: int | None = None,
) -> int:
    """Make a set of spoken words with the speech synthesizer eSpeak NG.

    The voices of evaluation are none of those of training. A call that was interrupted goes on
    where it was; the same options give the same clips.

    Parameters
    ----------
    to
        Folder of the set; train and val are made in it.
    words
        The wanted words, separated by commas. Ten other words are spoken as unknown ones.
    clips
        Clips for training, those of unknown words included.
    eval_clips
        Clips for evaluation; by default a sixth of those for training, and enough for all words.
    seed
        Which voices, speeds and pitches are drawn.
    workers
        Processes of the synthesizer at a time; by default one a processor.
    """
    from jumar.data.speech.espeak_keywords import (
        UNKNOWN_SHARE,
        KeywordsRequest,
        write_espeak_keywords,
    )
    from jumar.training.progress import Console

    console = Console()
    wanted = tuple(word.strip() for word in words.split(",") if word.strip())
    fewest = len(wanted) + UNKNOWN_SHARE
    request = KeywordsRequest(
        folder=to,
        words=wanted,
        clips=clips,
        eval_clips=max(-(-clips // 6), fewest) if eval_clips is None else eval_clips,
        seed=seed,
        workers=_checked_workers(workers, "processes"),
    )
    with console.bar("clips", None) as bar:
        parts = write_espeak_keywords(request, progress=bar.show_of)
    for part in parts:
        longer = f"; {part.left_out} longer than a second left out" if part.left_out else ""
        console.line(f"{part.part}: {part.clips} clips, {part.made} of them made now{longer}: {to}")
    return 0


def _checked_workers(asked: int | None, what: Literal["processes", "threads"]) -> int:
    if asked is None:
        return usable_cores()
    if asked < 1:
        raise UserError(f"{asked} {what}", where="--workers", todo="1 or more.")
    return checked_count(asked, what, "--workers")
