"""Images of an evaluation, as files in the run directory."""

import io
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from jumar.tasks.task import Illustration
from jumar.training.illustrations import save_illustrations
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory

PICTURES = [
    Illustration(
        name=name,
        caption=f"the {name} one",
        image=torch.full((2, 5, 3), shade, dtype=torch.uint8),
    )
    for name, shade in (("dark", 10), ("light", 250))
]


def test_images_are_separate_files_and_captions_one_file(tmp_path: Path) -> None:
    run, stream = RunDirectory(tmp_path), io.StringIO()
    for step in (120, 120, 7):
        save_illustrations(run, step, PICTURES, Console(stream=stream))
    assert sorted(path.name for path in run.pictures.iterdir()) == [
        "step-00000007",
        "step-00000120",
    ]
    folder = run.pictures / "step-00000120"
    assert sorted(path.name for path in folder.iterdir()) == [
        "captions.json",
        "dark.png",
        "light.png",
    ]
    captions = json.loads((folder / "captions.json").read_text())
    assert captions == {"dark": "the dark one", "light": "the light one"}
    for picture in PICTURES:
        read = np.asarray(Image.open(folder / f"{picture.name}.png"))
        assert np.array_equal(read, picture.image.numpy())
    assert stream.getvalue() == ""


def test_without_images_there_is_no_folder(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    save_illustrations(run, 1, [], Console(silent=True))
    assert not run.pictures.exists()


def test_unwritable_images_are_reported_in_one_line(tmp_path: Path) -> None:
    run, stream = RunDirectory(tmp_path), io.StringIO()
    run.pictures.write_text("in the way")
    save_illustrations(run, 9, PICTURES, Console(stream=stream))
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("the illustrations of step 9 could not be written: ")
