"""Unlabelled images: at any depth in a folder or zip, or in TFRecord shards.

`open_pictures` accepts the same paths as `open_source`, but needs no class folders: a folder of
photographs, a folder of clips with their frames, or a zip of either. Parts are detected in the same
way: folders or zips named `train` and `val` (or `validation`, `eval`, `test`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jumar.data.images.class_folders import (
    IMAGE_SUFFIXES,
    DiskTree,
    PackedNames,
    Tree,
    by_ending,
    ending_of,
    files_below,
    is_image,
    join,
    place_of,
    unlabelled,
)
from jumar.data.images.image_folder import ImageFolder
from jumar.data.images.image_shards import ImageShards, is_shard_name
from jumar.data.images.image_zip import ZipTree, images_of
from jumar.data.images.sources import (
    PART_NAMES,
    Split,
    is_registered,
    open_source,
)
from jumar.data.images.stored_images import names_stored_shards
from jumar.data.records.imagenet_example import picture_of_example
from jumar.data.samples import ImageSource, Notice, Record, fingerprint_of, read_ahead
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_file, is_folder, missing
from jumar.ground.text import counted

_DIGITS = re.compile("([0-9]+)")


class Pictures:
    """Images in a fixed order, all with label 0.

    Args:
        source: The source of the images.
        paths: Their paths within the folder or zip, in source order; None if they have none.

    Attributes:
        classes: Empty.
    """

    classes: Sequence[str] = ()

    def __init__(self, source: ImageSource, paths: PackedNames | None = None) -> None:
        self._source = source
        self._paths = paths

    def __len__(self) -> int:
        return len(self._source)

    @property
    def fingerprint(self) -> str:
        """The source's fingerprint; see `Fingerprinted`."""
        return fingerprint_of(self._source)

    def read_ahead(self, items: Sequence[int]) -> None:
        """See `ReadsAhead`."""
        read_ahead(self._source, items)

    def path(self, index: int) -> str:
        """Return the path within the folder or zip, with `/`; the index if it has none."""
        return str(index) if self._paths is None else self._paths[index]

    def read(self, index: int) -> Record:
        """Read one image, with label 0.

        Raises:
            CorruptRecord: The source cannot read it.
        """
        record = self._source.read(index)
        return Record(encoded=record.encoded, label=0, origin=record.origin)


class ShardPictures:
    """The images of TFRecord shards, whether or not the records have labels."""

    classes: Sequence[str] = ()

    def __init__(self, shards: ImageShards) -> None:
        self._shards = shards

    def __len__(self) -> int:
        return len(self._shards)

    @property
    def fingerprint(self) -> str:
        """The shards' fingerprint; see `Fingerprinted`."""
        return self._shards.fingerprint

    def read_ahead(self, items: Sequence[int]) -> None:
        """See `ReadsAhead`."""
        read_ahead(self._shards, items)

    def read(self, index: int) -> Record:
        """Read one image, with label 0.

        Raises:
            CorruptRecord: The record is damaged or lacks an image.
        """
        return picture_of_example(*self._shards.payload(index))


def open_pictures(path: str, split: Split, *, notice: Notice = lambda _: None) -> Pictures:
    """Open the images of one part of a data set, all with label 0, without classes.

    They are sorted by path, with numbers in names by value: `2.png` is before `10.png`. Hidden
    files are skipped; files that are not images are counted in a notice. For a path without parts,
    both splits have the same images, as in `open_source`.

    Args:
        path: A folder, a zip, one image, TFRecord shards with `image/encoded`, a glob of those,
            or a registered name; `~` is expanded.
        split: The part to open.
        notice: Called with how many files were skipped, or which must be unpacked first.

    Returns:
        A source that is pickled into workers as a block of names, not of images.

    Raises:
        UserError: The path does not exist, contains no images, or is damaged.
    """
    is_not_local = not path or is_registered(path) or names_stored_shards(path)
    expanded_path = None if is_not_local else expanded(path)
    if expanded_path is not None and is_folder(expanded_path) and not _has_shards(expanded_path):
        return _from_folder(expanded_path, split, notice)
    if expanded_path is not None and is_file(expanded_path):
        if expanded_path.suffix.lower() == ".zip":
            return _from_zip(expanded_path, split, notice)
        if is_image(expanded_path.name):
            return _one_picture(expanded_path)
    source = open_source(path, split, notice=notice)
    return Pictures(ShardPictures(source) if isinstance(source, ImageShards) else source)


def open_all_pictures(path: Path, *, notice: Notice = lambda _: None) -> Pictures:
    """Open all images of a folder or zip, whatever its folders are called, or a single image.

    Args:
        path: A folder, a zip or an image.
        notice: Called with how many files were skipped.

    Raises:
        UserError: The path does not exist, contains no images, or cannot be read.
    """
    if is_folder(path):
        return _opened(DiskTree(path), "", notice)
    if is_file(path) and path.suffix.lower() == ".zip":
        return _opened(ZipTree(path), "", notice)
    if is_file(path) and is_image(path.name):
        return _one_picture(path)
    if not exists(path):
        raise missing(path)
    raise UserError(
        "not a folder, a zip or an image",
        where=str(path),
        todo=f"Specify a folder or zip with images ({', '.join(IMAGE_SUFFIXES)}), or one of them.",
    )


def by_numbers(path: str) -> tuple[tuple[tuple[int, str], ...], ...]:
    """Return a key that sorts paths folder by folder, with the numbers in names by value.

    Numbers are compared by length and then as text, so that names with thousands of digits are
    handled fast; equal numbers with different leading zeros are compared as text.
    """
    return tuple(_name_key(name) for name in path.split("/"))


def _name_key(name: str) -> tuple[tuple[int, str], ...]:
    # The parts alternate between text and numbers, so parts of the same type are compared.
    parts = _DIGITS.split(name)
    values = [part.lstrip("0") if index % 2 else part for index, part in enumerate(parts)]
    key = [(len(value) if index % 2 else 0, value) for index, value in enumerate(values)]
    return (*key, (-1, ""), (0, name))


def _has_shards(folder: Path) -> bool:
    return any(is_shard_name(name) for name in DiskTree(folder).entries("")[1])


def _from_folder(folder: Path, split: Split, notice: Notice) -> Pictures:
    tree = DiskTree(folder)
    top = _top_folder(tree)
    part = _part(tree, top, split)
    zipped = _part_zips(tree, top)
    if part is not None and split in zipped:
        raise UserError(
            f"both '{part}' and '{zipped[split]}' are in it",
            where=tree.name,
            todo="Remove one of them, or name the intended one.",
        )
    if split in zipped:
        return _from_zip(folder / zipped[split], split, notice)
    if part is None and (zipped or _is_divided(tree, top)):
        raise _no_part(tree, split)
    return _opened(tree, part or "", notice)


def _from_zip(path: Path, split: Split, notice: Notice) -> Pictures:
    tree = ZipTree(path)
    top = _top_folder(tree)
    part = _part(tree, top, split)
    if part is None and _is_divided(tree, top):
        raise _no_part(tree, split)
    return _opened(tree, part or "", notice)


def _opened(tree: DiskTree | ZipTree, root: str, notice: Notice) -> Pictures:
    files = list(files_below(tree, root))
    pictures = [path for path in files if is_image(path)]
    ignored = Counter(ending_of(path) for path in files if not is_image(path))
    where = place_of(tree, root)
    if not pictures:
        raise UserError(
            "there are no images in it"
            + (f", only {by_ending(ignored)}" if ignored else ", and no other files"),
            where=where,
            todo=f"Specify a folder or a zip with images ({', '.join(IMAGE_SUFFIXES)}) anywhere "
            "in it, or TFRecord shards.",
        )
    if ignored:
        count, kinds = ignored.total(), by_ending(ignored)
        notice(f"{where}: skipped {counted(count, 'non-image file')}: {kinds}")
    listing = unlabelled(sorted(pictures, key=by_numbers), ignored, root)
    return Pictures(images_of(tree, listing), listing.paths)


def _one_picture(path: Path) -> Pictures:
    listing = unlabelled([path.name])
    return Pictures(ImageFolder(path.parent, listing), listing.paths)


def _top_folder(tree: Tree) -> str:
    """Follow folders that contain nothing but one folder, up to the splits or the images."""
    top = ""
    while True:
        folders, files = tree.entries(top)
        parts = {name for names in PART_NAMES.values() for name in names}
        if len(folders) != 1 or folders[0].lower() in parts or any(map(is_image, files)):
            return top
        top = join(top, folders[0])
        if top.count("/") > 32:  # a link that points to a parent; `files_below` reports it
            return ""


def _part(tree: Tree, top: str, split: Split) -> str | None:
    folders = {name.lower(): name for name in tree.entries(top)[0]}
    return next((join(top, folders[name]) for name in PART_NAMES[split] if name in folders), None)


def _is_divided(tree: Tree, top: str) -> bool:
    return any(_part(tree, top, split) is not None for split in PART_NAMES)


def _part_zips(tree: DiskTree, top: str) -> dict[Split, str]:
    files = {name.lower(): join(top, name) for name in tree.entries(top)[1]}
    return {
        split: next(files[f"{name}.zip"] for name in names if f"{name}.zip" in files)
        for split, names in PART_NAMES.items()
        if any(f"{name}.zip" in files for name in names)
    }


def _no_part(tree: Tree, split: Split) -> UserError:
    return UserError(
        f"there are no images for {'training' if split == 'train' else 'evaluation'} in it",
        where=tree.name,
        todo=f"Expected {' or '.join(PART_NAMES[split])} in it as a folder or zip; or specify the "
        "path of the intended folder.",
    )
