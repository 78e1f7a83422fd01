"""`jumar detect`."""

from pathlib import Path

from jumar.cli.options import (
    CheckpointOption,
    DeviceOption,
    EmaOption,
    RunArgument,
    RunImportOption,
    SetOption,
)


def detect(
    run: RunArgument,
    source: Path,
    /,
    *,
    to: Path,
    tile: int = 0,
    every: int = 1,
    no_pictures: bool = False,
    skip_corrupt: int = 0,
    checkpoint: CheckpointOption = "last",
    ema: EmaOption = True,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: RunImportOption = (),
) -> int:
    """Find the words in images with the network of a run.

    Parameters
    ----------
    source
        An image, a folder or zip with images at any depth, or a video.
    to
        A new folder: `words.json` with the outline and the score of each word, `icdar/` with a text
        file for each image in the format of ICDAR submissions, and `drawn/` with the images or the
        video with outlined words.
    tile
        Process larger images in overlapping tiles with sides of this many pixels, at full size; by
        default images are shrunk to the recipe's `data.eval_longest`.
    every
        Process only every Nth frame of a video.
    no_pictures
        Do not write the images with the outlines of their words.
    skip_corrupt
        Skip up to this many unreadable images.
    set_
        Change a field, for example `--set reading.threshold=0.7`.
    """
    from jumar.runs.detect import DetectRequest
    from jumar.runs.detect import detect as detect_words

    return detect_words(
        DetectRequest(
            run_dir=run,
            source=source,
            to=to,
            tile=tile,
            every=every,
            drawn=not no_pictures,
            skip_corrupt=skip_corrupt,
            which=checkpoint,
            use_ema=ema,
            assignments=set_,
            imports=import_,
            device=device,
        )
    )
