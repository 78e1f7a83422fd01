"""`jumar data tfrecord`."""

import os
from pathlib import Path
from typing import Literal

from cyclopts import App

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
    from jumar.data.tfrecord_writer import convert_to_tfrecords
    from jumar.training.progress import Console

    console = Console()
    with console.bar("images", 1) as bar:
        written = convert_to_tfrecords(
            source,
            to,
            shards=shards,
            eval_shards=eval_shards,
            workers=workers or os.cpu_count() or 1,
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
