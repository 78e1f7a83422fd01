"""Read the images of a run, even if files are damaged or missing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jumar.ground.json_text import parse_json


@dataclass(frozen=True, kw_only=True)
class RunPicture:
    """An image file of a run, which has not been decoded yet."""

    name: str
    step: int
    path: Path
    caption: str


def read_pictures(directory: Path, faults: list[str]) -> tuple[RunPicture, ...]:
    """Return the images in a folder with subfolders per step, in the order of steps and captions.

    Names are taken from the files themselves, so that captions cannot refer to other files.

    Args:
        directory: A run's `pictures`; it may be missing.
        faults: Collects a line for each captions file that cannot be read.
    """
    pictures: list[RunPicture] = []
    for step, folder in _step_folders(directory):
        captions = _captions(folder / "captions.json", step, faults)
        positions = {name: position for position, name in enumerate(captions)}
        try:
            paths = [path for path in folder.glob("*.png") if not path.name.startswith(".")]
        except OSError:
            continue
        paths.sort(key=lambda path: (positions.get(path.stem, len(positions)), path.stem))
        pictures += [
            RunPicture(name=path.stem, step=step, path=path, caption=captions.get(path.stem, ""))
            for path in paths
        ]
    return tuple(pictures)


def picture_names(pictures: Sequence[RunPicture]) -> list[str]:
    """Return the names in the order of the newest step, followed by those of earlier steps only."""
    newest_first = sorted(pictures, key=lambda picture: -picture.step)
    return list(dict.fromkeys(picture.name for picture in newest_first))


def _step_folders(directory: Path) -> list[tuple[int, Path]]:
    try:
        entries = list(directory.iterdir())
    except OSError:
        return []
    matches = [(re.fullmatch(r"step-(\d{1,18})", entry.name), entry) for entry in entries]
    return sorted((int(match[1]), entry) for match, entry in matches if match)


def _captions(path: Path, step: int, faults: list[str]) -> dict[str, str]:
    """Return captions by name; a missing file is not a fault, since a killed run may lack it."""
    try:
        data: Any = parse_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        data = None
    if not isinstance(data, Mapping):
        faults.append(f"the captions of the images of step {step} cannot be read")
        return {}
    captions = cast("Mapping[str, Any]", data)
    return {name: text for name, text in captions.items() if isinstance(text, str)}
