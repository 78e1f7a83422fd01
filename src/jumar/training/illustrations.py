"""Saving the illustrations that a task draws after an evaluation in the run directory.

pictures/step-00000120/samples.png    one file per illustration
pictures/step-00000120/captions.json  {"samples": "64 cats, one latent vector each"}
"""

from collections.abc import Sequence
from pathlib import Path

from jumar.data.pixels.picture_grid import save_png
from jumar.ground.errors import UserError
from jumar.tasks.task import Illustration
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, write_json


def save_illustrations(
    run: RunDirectory, step: int, illustrations: Sequence[Illustration], console: Console
) -> None:
    """Write the illustrations of a step.

    If they cannot be written, a line reports it and the run continues, since they are not results.
    """
    if not illustrations:
        return
    directory: Path = run.pictures / f"step-{step:08d}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for illustration in illustrations:
            save_png(illustration.image, directory / f"{illustration.name}.png")
        captions = {illustration.name: illustration.caption for illustration in illustrations}
        write_json(directory / "captions.json", captions)
    except (UserError, OSError) as error:
        console.line(f"the illustrations of step {step} could not be written: {error}")
