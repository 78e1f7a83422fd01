"""Images with the outlines of their words, from a folder or a zip with labels in any known format.

Images and label files may be at any depth; `gt_img_1.txt`, `img_1.txt`, `poly_gt_img_1.txt`
and an entry `img_1` of a JSON file all belong to `img_1.jpg`. Folders are parts if their names
contain a keyword: `train` and `training` (`ch4_training_images`), or `val`, `validation`, `eval`,
`test`.

All labels are read when the set is opened, so that errors are reported immediately.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from jumar.data.images.class_folders import (
    DiskTree,
    files_below,
    is_image,
    unlabelled,
)
from jumar.data.images.image_folder import ImageFolder
from jumar.data.images.image_zip import ImageZip, ZipTree, images_of
from jumar.data.images.picture_tree import by_numbers
from jumar.data.images.sources import PART_NAMES, Notice, Split
from jumar.data.pixels.decode import DecodeError, EncodedImage
from jumar.data.polygons.label_files import LabelFile, read_labels
from jumar.data.polygons.regions import DONT_CARE, BrokenPolygon, Region, mended
from jumar.data.samples import CorruptRecord, Fault, Record, fingerprint
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_folder, missing
from jumar.ground.text import counted, plain_text

_WORD = re.compile(r"[a-z]+")
_PREFIX = re.compile(r"^(poly_)?(gt_|label_)?")
_TRAINING = ("train", "training")
_MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class TextPictures:
    """Undecoded images and their regions.

    Attributes:
        pictures: The source of the images, all with label 0.
        regions: The regions of each image.
        faults: Labels that could not be used, by file and line.
    """

    pictures: ImageFolder | ImageZip
    regions: Sequence[Sequence[Region]]
    faults: Sequence[Fault] = ()

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the images' paths, outlines and texts; see `Fingerprinted`."""
        contents = [self.pictures.fingerprint.encode()]
        for regions in self.regions:
            contents += [region.corners.tobytes() for region in regions]
            contents.append("\0".join(region.text for region in regions).encode())
        return fingerprint(*contents)

    def read(self, index: int) -> Record:
        """Read one image; raises like its source."""
        return self.pictures.read(index)


def open_text_pictures(
    path: str, split: Split, *, labels: str = "", notice: Notice = lambda _: None
) -> TextPictures:
    """Open the images of one part of a data set, with the outlines of their words.

    Args:
        path: A folder or a zip; `~` is expanded. Without parts, both splits have the same images.
        split: The part to open.
        labels: Another folder or zip with the label files, if they are not at `path`.
        notice: Called with descriptions of labels that were repaired, left out or are missing.

    Raises:
        UserError: The path does not exist, or has no images, no labels or no usable word.
    """
    tree = _tree(path)
    label_tree = _tree(labels) if labels else tree
    names = _of_part(list(files_below(tree, "")), split, tree.name)
    label_names = names
    if labels:
        label_names = _of_part(list(files_below(label_tree, "")), split, label_tree.name)
    pictures = sorted((name for name in names if is_image(name)), key=by_numbers)
    if not pictures:
        zips = [name for name in names if name.lower().endswith(".zip")]
        todo = f"Unpack {zips[0]}, or specify a zip of images and one of labels." if zips else ""
        raise UserError("there are no images in it", where=tree.name, todo=todo)
    files = read_labels(label_tree, sorted(label_names, key=by_numbers))
    if not files:
        raise UserError(
            "there are no label files in it",
            where=label_tree.name,
            todo="Expected gt_NAME.txt for each image NAME.jpg, or a JSON file; "
            "set data.labels if they are in another folder or zip.",
        )
    by_stem = _by_stem(files)
    labelled = [name for name in pictures if stem_of(name) in by_stem]
    _report_missing(pictures, labelled, by_stem, notice)
    if not labelled:
        raise UserError(
            "no label file belongs to an image",
            where=label_tree.name,
            todo=f"The image {pictures[0]} needs a file gt_{stem_of(pictures[0])}.txt, but there "
            f"is {files[0].name}.",
        )
    return _opened(tree, labelled, by_stem, notice)


def stem_of(name: str) -> str:
    """Return the key of an image and its label file: the name without folder, `gt_` and suffix."""
    file = name.rpartition("/")[2]
    stem, dot, suffix = file.rpartition(".")
    is_suffix = dot and (is_image(file) or suffix.lower() in ("txt", "json", "mat"))
    return _PREFIX.sub("", stem if is_suffix else file)


def _tree(path: str) -> DiskTree | ZipTree:
    expanded_path = expanded(path)
    if not exists(expanded_path):
        raise missing(expanded_path, more="Specify a folder or a zip of images and label files.")
    return DiskTree(expanded_path) if is_folder(expanded_path) else ZipTree(expanded_path)


def _of_part(names: Sequence[str], split: Split, where: str) -> Sequence[str]:
    """Return the files of a part; all files if no folder has the name of a part."""
    parts = {name: _part_of(name) for name in names}
    if not set(parts.values()) - {""}:
        return names
    part_names = [name for name in names if parts[name] in ("", split)]
    if not any(parts[name] == split for name in names):
        raise UserError(
            f"there are no images for {'training' if split == 'train' else 'evaluation'} in it",
            where=where,
            todo="Specify the path of the intended folder.",
        )
    return part_names


def _part_of(name: str) -> Split | Literal[""]:
    for folder in name.split("/")[:-1]:
        words = set(_WORD.findall(folder.lower()))
        if words & set(_TRAINING):
            return "train"
        if words & set(PART_NAMES["eval"]):
            return "eval"
    return ""


def _by_stem(files: Sequence[LabelFile]) -> dict[str, LabelFile]:
    by_stem: dict[str, LabelFile] = {}
    for file in files:
        if (other_file := by_stem.setdefault(stem_of(file.name), file)) is not file:
            raise UserError(
                f"'{other_file.origin}' and '{file.origin}' are labels of the same image",
                todo="Keep one of them, or specify the path of the intended folder (data.labels).",
            )
    return by_stem


def _report_missing(
    pictures: Sequence[str],
    labelled: Sequence[str],
    by_stem: Mapping[str, LabelFile],
    notice: Notice,
) -> None:
    unlabelled = sorted(set(pictures) - set(labelled), key=by_numbers)
    if unlabelled:
        examples = _first_names(unlabelled)
        notice(f"{counted(len(unlabelled), 'image')} without labels left out: {examples}")
    stems = {stem_of(name) for name in labelled}
    orphans = [file.origin for stem, file in by_stem.items() if stem not in stems]
    if orphans:
        notice(f"{counted(len(orphans), 'label file')} without an image: {_first_names(orphans)}")
    repeated_stems = [stem for stem, count in Counter(map(stem_of, labelled)).items() if count > 1]
    if repeated_stems:
        raise UserError(
            f"several images are named {repeated_stems[0]}",
            todo="Their labels are ambiguous: specify the path of the intended folder.",
        )


def _opened(
    tree: DiskTree | ZipTree,
    names: Sequence[str],
    by_stem: Mapping[str, LabelFile],
    notice: Notice,
) -> TextPictures:
    source = images_of(tree, unlabelled(names))
    faults: list[Fault] = []
    changes: list[Fault] = []
    regions = [
        _regions(by_stem[stem_of(name)], _size_of(source, index), faults, changes)
        for index, name in enumerate(names)
    ]
    for action, outlines in (("left out", faults), ("repaired", changes)):
        if outlines:
            examples = _first_names([str(outline) for outline in outlines])
            notice(f"{counted(len(outlines), 'outline')} {action}: {examples}")
    if not any(not region.ignored for picture_regions in regions for region in picture_regions):
        reason = (
            f"; {counted(len(faults), 'outline')} cannot be used: {faults[0]}" if faults else ""
        )
        raise UserError(
            f"no word in the labels of {counted(len(names), 'image')}{reason}", where=tree.name
        )
    return TextPictures(pictures=source, regions=regions, faults=faults)


def _size_of(source: ImageFolder | ImageZip, index: int) -> tuple[int, int] | None:
    """Return height and width; None for an unreadable image, which is reported later."""
    try:
        header = EncodedImage(source.read(index).encoded)
    except (CorruptRecord, DecodeError):
        return None
    return header.height, header.width


def _regions(
    file: LabelFile, size: tuple[int, int] | None, faults: list[Fault], changes: list[Fault]
) -> list[Region]:
    regions: list[Region] = []
    faults += [Fault(origin=file.location(line), reason=reason) for line, reason in file.bad]
    for line, corners, text in file.outlines:
        origin = file.location(line)
        try:
            outline, repairs = mended(corners, size)
        except BrokenPolygon as error:
            faults.append(Fault(origin=origin, reason=str(error)))
            continue
        if repairs:
            changes.append(Fault(origin=origin, reason=", ".join(repairs)))
        regions.append(Region(corners=outline, text=text, ignored=text == DONT_CARE))
    return regions


def _first_names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    shown_names = [plain_text(name) for name in names[:_MAX_NAMED]]
    return "; ".join(shown_names + ([f"and {more} more"] if more > 0 else []))
