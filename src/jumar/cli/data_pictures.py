"""`jumar data words-in-pictures`."""

from pathlib import Path
from typing import Literal

from jumar.cli.counts import checked_workers
from jumar.ground.errors import UserError
from jumar.ground.text import counted


def words_in_pictures(
    *,
    to: Path,
    pictures: int = 1_000,
    eval_pictures: int | None = None,
    script: Literal["latin", "chinese", "both"] = "latin",
    fonts: tuple[Path, ...] = (),
    photographs: Path | None = None,
    seed: int = 1,
    workers: int | None = None,
) -> int:
    """Draw words on images in this machine's fonts, to train text detectors.

    The outline of each word is exact; some words are too small to read (###). The folder is written
    completely or not at all. With the same versions of Pillow and NumPy, the same options, fonts
    and photographs result in the same bytes.

    Parameters
    ----------
    to
        Folder for the data set; train and test are created in it.
    pictures
        Number of training images.
    eval_pictures
        Number of test images; by default a tenth of the training images. With four or more fonts,
        every fourth is reserved for the test images.
    script
        Script of the words: latin, chinese, or both.
    fonts
        Font files or folders of them; by default this machine's.
    photographs
        A folder or zip of images to write on; by default textures.
    seed
        Random seed.
    workers
        Number of processes; by default one per processor.
    """
    from jumar.data.polygons.written import Writing, write_text_pictures
    from jumar.training.progress import Console

    num_tests = max(1, pictures // 10) if eval_pictures is None else eval_pictures
    if pictures < 1 or num_tests < 0:
        raise UserError(
            f"cannot write {pictures} and {num_tests} images",
            where="--pictures, --eval-pictures",
            todo="Allowed: 1 or more for training, 0 or more for evaluation.",
        )
    console = Console()
    with console.bar("images", 1) as bar:
        summary = write_text_pictures(
            to,
            Writing(script=script, fonts=fonts, photographs=photographs, seed=seed),
            train=pictures,
            test=num_tests,
            workers=checked_workers(workers, "processes"),
            progress=bar.show_with_total,
        )
    console.line(
        f"{counted(summary.words, 'word')}, {summary.ignored} of them ignored, in "
        f"{counted(summary.pictures, 'image')}: {to}"
    )
    return 0
