"""Checks of images with outlines of words."""

from dataclasses import replace

from jumar.data.checking.item import CheckedPart, Item
from jumar.data.checking.pictures import picture_item
from jumar.data.images.sources import Split
from jumar.data.polygons.text_pictures import TextPictures, open_text_pictures
from jumar.data.samples import CorruptRecord, Notice
from jumar.ground.errors import UserError


class OutlinedReader:
    """Reads images with words."""

    def __init__(self, pictures: TextPictures) -> None:
        self._pictures = pictures

    def __len__(self) -> int:
        return len(self._pictures)

    def item(self, index: int) -> Item:
        """See `ItemReader.item`."""
        regions = self._pictures.regions[index]
        traits: list[str] = []
        if not regions:
            traits.append("without words")
        elif all(region.ignored for region in regions):
            traits.append("with ignored words only")
        try:
            # The outlines are the label: copies of an image should have the same ones.
            record = self._pictures.read(index)
            outlines = sorted(str(region.corners.round().tolist()) for region in regions)
            item = picture_item(record, traits=traits)
            return replace(item, label="; ".join(outlines))
        except CorruptRecord as error:
            return Item(where=error.fault.origin, fault=error.fault.reason)


def open_outlined(
    path: str, eval_path: str, *, labels: str, eval_labels: str, notice: Notice
) -> list[CheckedPart]:
    """Open the parts of a set of images with words.

    Raises:
        UserError: There are no images with words at a path.
    """
    opened_parts = [("training", open_text_pictures(path, "train", labels=labels, notice=notice))]
    split: Split = "eval"
    if eval_path:
        evaluation = open_text_pictures(eval_path, split, labels=eval_labels, notice=notice)
        opened_parts.append(("evaluation", evaluation))
    else:
        try:
            evaluation = open_text_pictures(path, split, labels=labels, notice=notice)
        except UserError:
            evaluation = None
        if evaluation is not None and evaluation.fingerprint != opened_parts[0][1].fingerprint:
            opened_parts.append(("evaluation", evaluation))
    return [
        CheckedPart(name=name, reader=OutlinedReader(pictures), faults=pictures.faults)
        for name, pictures in opened_parts
    ]
