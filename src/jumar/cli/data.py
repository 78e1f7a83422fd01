"""`jumar data`: commands for images and spoken words.

Commands for texts are in `data_text.py`, for words in images in `data_pictures.py`.
"""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from jumar.cli.counts import checked_workers
from jumar.cli.options import OPTIONS
from jumar.ground.text import counted

app = App(name="data", help="Prepare data sets.", group_parameters=OPTIONS)
app.command(
    "jumar.cli.data_text:pretraining",
    help="Write masked segment pairs for pre-training BERT and NEZHA, as TFRecord files.",
    usage="Usage: jumar data pretraining [OPTIONS] --vocab PATH --to PATH TEXT [MORE...]",
)
app.command(
    "jumar.cli.data_text:vocab",
    help="Build a word-piece vocabulary from texts, as a vocab.txt in BERT's format.",
    usage="Usage: jumar data vocab [OPTIONS] --to PATH TEXT [MORE...]",
)
app.command(
    "jumar.cli.data_pictures:words_in_pictures",
    help="Draw words on images in this machine's fonts, to train text detectors.",
)
app.command(
    "jumar.cli.data_check:check",
    help="Read a whole data set and list broken, duplicate and odd items.",
    usage="Usage: jumar data check [OPTIONS] DATA",
)


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

    The folder is written completely or not at all. The same source and number of shards always
    result in the same bytes.

    Parameters
    ----------
    source
        A folder or zip of class folders, or a folder that contains train and val.
    to
        Folder for the shards.
    shards
        Number of training shards.
    eval_shards
        Number of validation shards; by default in proportion to the number of images.
    workers
        Number of threads; by default one per processor.
    label_offset
        Added to all labels: 1 reserves label 0 for the background, as in ImageNet's shards.
    compression
        Compression of the shards.
    """
    from jumar.data.images.tfrecord_writer import convert_to_tfrecords
    from jumar.training.progress import Console

    console = Console()
    with console.bar("images", 1) as bar:
        parts = convert_to_tfrecords(
            source,
            to,
            shards=shards,
            eval_shards=eval_shards,
            workers=checked_workers(workers, "threads"),
            label_offset=label_offset,
            compression=compression,
            progress=bar.show_with_total,
            notice=console.line,
        )
    for part in parts:
        console.line(
            f"{part.prefix}: {counted(part.images, 'image')} of "
            f"{counted(len(part.classes), 'class')} in "
            f"{counted(len(part.files), 'shard')}, {part.bytes / 1e6:.1f} MB, {part.seconds:.1f} "
            f"s: {to}"
        )
    return 0


@app.command
def keywords(
    *,
    to: Path,
    words: Annotated[
        str, Parameter(metavar="WORD,WORD,...")
    ] = "yes,no,up,down,left,right,on,off,stop,go",
    clips: int = 6_000,
    eval_clips: int | None = None,
    seed: int = 1,
    workers: int | None = None,
) -> int:
    """Create a data set of spoken words with the speech synthesiser eSpeak NG.

    Training and evaluation share no voices. An interrupted command continues where it stopped; the
    same options always result in the same clips.

    Parameters
    ----------
    to
        Folder for the data set; train and val are created in it.
    words
        The keywords, separated by commas. Ten other words serve as unknown words.
    clips
        Number of training clips, including those of unknown words.
    eval_clips
        Number of evaluation clips; by default a sixth of the training clips, and at least one for
        each word.
    seed
        Random seed for voices, speeds and pitches.
    workers
        Number of synthesiser processes; by default one per processor.
    """
    from jumar.data.speech.espeak_keywords import (
        UNKNOWN_SHARE,
        KeywordsRequest,
        write_espeak_keywords,
    )
    from jumar.training.progress import Console

    console = Console()
    word_list = tuple(word.strip() for word in words.split(",") if word.strip())
    min_clips = len(word_list) + UNKNOWN_SHARE
    request = KeywordsRequest(
        folder=to,
        words=word_list,
        clips=clips,
        eval_clips=max(-(-clips // 6), min_clips) if eval_clips is None else eval_clips,
        seed=seed,
        workers=checked_workers(workers, "processes"),
    )
    with console.bar("clips", None) as bar:
        parts = write_espeak_keywords(request, progress=bar.show_with_total)
    for part in parts:
        longer = f"; {part.left_out} longer than a second left out" if part.left_out else ""
        console.line(
            f"{part.part}: {counted(part.clips, 'clip')}, {part.made} of them new{longer}: {to}"
        )
    return 0
