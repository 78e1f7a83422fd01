"""The images of runs that a page shows side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jumar.experiments.picture_reading import RunPicture, picture_names
from jumar.report.content import EmbeddedImage, Picture, PictureStrip
from jumar.report.embedding import embedded_image

MAX_PICTURES = 12
"""Maximum number of images; the page stays below 4 MB."""


@dataclass(kw_only=True)
class Strips:
    """The images that a page shows, and notes about the omitted ones."""

    strips: list[PictureStrip] = field(default_factory=list[PictureStrip])
    notes: list[str] = field(default_factory=list[str])


def strips_of_run(pictures: Sequence[RunPicture]) -> Strips:
    """Return the first and the newest readable image of each name, to show progress."""
    result = Strips()
    names = picture_names(pictures)
    for name in names[: MAX_PICTURES // 2]:
        by_step = sorted((p for p in pictures if p.name == name), key=lambda picture: picture.step)
        newest = _first_readable(by_step[::-1], result.notes)
        if newest is None:
            continue
        earlier = [picture for picture in by_step if picture.step < newest[0].step]
        first = _first_readable(earlier, result.notes)
        readable = [pair for pair in (first, newest) if pair is not None]
        labelled = [(f"step {picture.step}", picture, image) for picture, image in readable]
        result.strips.append(_strip(name, labelled))
    result.notes = list(dict.fromkeys(result.notes))
    _note_left_out(result, len(names), "names", MAX_PICTURES // 2)
    return result


def strips_of_sweep(runs: Sequence[tuple[str, Sequence[RunPicture]]]) -> Strips:
    """Return the newest readable image of each name from each run.

    Args:
        runs: The label of each run with its images, in the order of the page.
    """
    result = Strips()
    with_pictures = [(label, pictures) for label, pictures in runs if pictures]
    shown_runs = with_pictures[:MAX_PICTURES]
    names = list(
        dict.fromkeys(name for _, pictures in shown_runs for name in picture_names(pictures))
    )
    max_names = max(1, MAX_PICTURES // max(len(shown_runs), 1))
    for name in names[:max_names]:
        labelled: list[tuple[str, RunPicture, EmbeddedImage]] = []
        for label, pictures in shown_runs:
            newest_first = sorted(
                (p for p in pictures if p.name == name), key=lambda picture: -picture.step
            )
            notes: list[str] = []
            newest = _first_readable(newest_first, notes)
            result.notes += [f"{label}: {note}" for note in notes]
            if newest is not None:
                labelled.append((f"{label}, step {newest[0].step}", *newest))
        if labelled:
            result.strips.append(_strip(name, labelled))
    _note_left_out(result, len(with_pictures), "runs", MAX_PICTURES)
    _note_left_out(result, len(names), "names", max_names)
    return result


def _first_readable(
    pictures: Sequence[RunPicture], notes: list[str]
) -> tuple[RunPicture, EmbeddedImage] | None:
    for picture in pictures:
        image = embedded_image(picture.path)
        if image is not None:
            return picture, image
        notes.append(f"{picture.path.name} of step {picture.step} cannot be read and is omitted.")
    return None


def _strip(name: str, labelled: Sequence[tuple[str, RunPicture, EmbeddedImage]]) -> PictureStrip:
    captions = {picture.caption for _, picture, _ in labelled}
    common = captions.pop() if len(captions) == 1 else ""
    return PictureStrip(
        title=name,
        caption=common,
        pictures=[
            Picture(label=label, image=image, caption="" if common else picture.caption)
            for label, picture, image in labelled
        ],
    )


def _note_left_out(result: Strips, count: int, noun: str, limit: int) -> None:
    if count > limit:
        result.notes.append(
            f"The first {limit} of {count} {noun} are shown; "
            "all images are in the folder pictures of each run."
        )
