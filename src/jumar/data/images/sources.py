"""Sources of images: a registered name, class folders, zips of them, or TFRecord shards.

`data.path` may be
- a registered name (`digits`; `register_source` adds others),
- a folder of class folders, or a zip of one (one common top folder in it is tolerated),
- a folder or zip that contains the parts `train` and `val` (or `validation`, `eval`, `test`) as
  folders of class folders; in a folder they may also be `train.zip` and `val.zip`,
- a folder of shards named `train-00000-of-00008` and `validation-00000-of-00002`, optionally with
  other text before or after that,
- one TFRecord file, or a glob of them,
- any of these in an object store, as `s3://BUCKET/PATH` or `obs://BUCKET/PATH`.

Classes are the names of the class folders, sorted by code point: `10` comes before `2`.
"""

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from jumar.data.images.class_folders import (
    DiskTree,
    EmptyClasses,
    Tree,
    is_image,
    join,
    list_classes,
    place_of,
    report_irregularities,
)
from jumar.data.images.digits import open_digits
from jumar.data.images.image_shards import ImageShards, is_shard_name
from jumar.data.images.image_zip import ZipTree, images_of
from jumar.data.images.stored_images import open_stored_images, stored_shards
from jumar.data.records.record_shards import (
    SHARD_NAME,
    check_none_missing,
    check_one_set,
    shard_gaps,
)
from jumar.data.records.tfrecord_cache import is_record_file
from jumar.data.samples import CorruptRecord, ImageSource, Notice
from jumar.ground.errors import UserError, nearest
from jumar.ground.paths import exists, expanded, is_file, is_folder, missing, store_url

Split = Literal["train", "eval"]
"""The part of a data set: for training or for evaluation."""
SourceOpener = Callable[[Split], ImageSource]

PART_NAMES: Mapping[Split, Sequence[str]] = {
    "train": ("train",),
    "eval": ("val", "validation", "eval", "test"),
}
"""Names of a part's folder, zip or shards, in any case; the first one found is used."""

_ShardOpener = Callable[[Sequence[Path], Notice], ImageSource]
_WORD = re.compile(r"[a-z]+")
_registered: dict[str, SourceOpener] = {"digits": open_digits}


@dataclass(frozen=True, kw_only=True)
class _Contents:
    """The content of a path: parts, or one undivided set."""

    parts: Mapping[Split, Callable[[], ImageSource]] = field(default_factory=dict)
    whole: Callable[[], ImageSource] | None = None


def register_source(name: str, opener: SourceOpener) -> None:
    """Register your own source, to be opened with `data.path=name`.

    Args:
        name: A name that does not look like a path.
        opener: Called with the split; returns its source, which is pickled into workers.

    Raises:
        UserError: The name is used by another opener, or looks like a path.
    """
    if not name or any(character in name for character in "/\\*?[~."):
        raise UserError(
            f"'{name}' is not a valid source name", todo="Use a name without / \\ * ? [ ~ ."
        )
    if _registered.get(name, opener) is not opener:
        raise UserError(f"a source named '{name}' already exists", todo="Choose another name.")
    _registered[name] = opener


def is_registered(name: str) -> bool:
    """Return whether `data.path=name` is a registered source."""
    return name in _registered


def open_source(path: str, split: Split, *, notice: Notice = lambda _: None) -> ImageSource:
    """Open the images of one part of a data set.

    For a path without parts, both splits have the same images, because the user may have specified
    it for only one of them; `check_pair` detects if training and evaluation share images.

    Args:
        path: The value of `data.path` or `data.eval_path`; `~` is expanded.
        split: The part to open.
        notice: Called with which files were skipped or must be unpacked first.

    Raises:
        EmptyClasses: Some class folders contain no image.
        UserError: The path does not exist, contains nothing suitable, or is damaged.
    """
    if path in _registered:
        return _registered[path](split)
    try:
        return _opened_part(path, split, notice)
    except UserError as error:
        # Shards in a store are checked as paths, in which `//` has become one slash.
        url = store_url(error.where)
        if url is None:
            raise
        raise UserError(error.what, where=url, todo=error.todo) from error


def _opened_part(path: str, split: Split, notice: Notice) -> ImageSource:
    contents = _find(path, notice)
    if split in contents.parts:
        return contents.parts[split]()
    if contents.whole is not None:
        return contents.whole()
    names = " or ".join(PART_NAMES[split])
    raise UserError(
        f"there are no images for {'training' if split == 'train' else 'evaluation'} in it",
        where=path,
        todo=f"Expected {names} in it as a folder, zip or shards"
        + ("." if split == "train" else ", or set data.eval_path to where they are."),
    )


def splits_of(path: str) -> Sequence[Split]:
    """Return the splits of the data set at a path; empty if it is not divided."""
    if path in _registered:
        return ("train", "eval")
    parts = _find(path, lambda _: None).parts
    return tuple(split for split in PART_NAMES if split in parts)


def check_pair(train: ImageSource, evaluation: ImageSource) -> None:
    """Check that two sources can serve as training and evaluation data of one model.

    Raises:
        UserError: Their classes differ, so the same label would have two meanings; or they have
            the same images, so the score would measure memorisation.
    """
    if train.classes and evaluation.classes and tuple(train.classes) != tuple(evaluation.classes):
        only_train = [name for name in train.classes if name not in set(evaluation.classes)]
        only_eval = [name for name in evaluation.classes if name not in set(train.classes)]
        raise UserError(
            f"the classes of training ({len(train.classes)}) and evaluation "
            f"({len(evaluation.classes)}) differ: only in training {_first_names(only_train)}, "
            f"only in evaluation {_first_names(only_eval)}",
            where="data.path and data.eval_path",
            todo="Labels are positions in the sorted class names, so both need the same classes.",
        )
    has_same_size = len(train) == len(evaluation) > 0
    if has_same_size and _end_origins(train) == _end_origins(evaluation):
        raise UserError(
            "evaluation would use the training images",
            where="data.eval_path",
            todo="Set it to other images, or put train and val folders into data.path.",
        )


def _first_names(names: Sequence[str]) -> str:
    return (", ".join(names[:3]) + (", ..." if len(names) > 3 else "")) or "none"


def _end_origins(source: ImageSource) -> Sequence[str]:
    """Return the resolved origins of the first and the last image."""
    origins: list[str] = []
    for index in (0, len(source) - 1):
        try:
            origins.append(source.read(index).origin)
        except CorruptRecord as error:
            origins.append(error.fault.origin)
    return [str(Path(origin).resolve()) for origin in origins]


def _find(path: str, notice: Notice) -> _Contents:
    if not path:
        raise UserError(
            "no path set", where="data.path", todo=f"Specify images, or one of: {_names()}."
        )
    url = store_url(path)
    if url is not None and (shards := stored_shards(url)) is not None:
        opener = partial(open_stored_images, shards)
        if shards.is_chosen:
            return _Contents(whole=partial(_open_chosen_shards, shards.paths, url, notice, opener))
        return _find_shards(shards.paths, notice, opener)
    if url is not None:
        path = str(expanded(url))
    if "://" in path:
        raise UserError(
            "paths of this kind cannot be read",
            where=path,
            todo="Specify a local path, or s3://BUCKET/PATH or obs://BUCKET/PATH.",
        )
    expanded_path = expanded(path)
    if is_folder(expanded_path):
        return _find_in_folder(expanded_path, notice)
    if exists(expanded_path):
        return _find_in_file(expanded_path, notice)
    if glob.has_magic(path):
        return _find_by_glob(str(expanded_path), notice)
    suggestion = nearest(path, _registered)
    advice = f"Specify a folder, a zip, TFRecord shards, or one of: {_names()}."
    if suggestion:  # closer than anything in the current directory
        raise UserError(
            "there is no such file or folder",
            where=path,
            todo=f"Did you mean the source '{suggestion}'? {advice}",
        )
    raise missing(expanded_path, more=advice)


def _names() -> str:
    return ", ".join(sorted(_registered))


def _find_by_glob(pattern: str, notice: Notice) -> _Contents:
    matches = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207 - absolute patterns
    if not matches:
        raise UserError("no file matches", where=pattern)
    for match in matches:
        if not is_file(match) or match.suffix.lower() == ".zip" or not is_record_file(match):
            raise UserError(
                f"matches '{match}', which is not a TFRecord file",
                where=pattern,
                todo="Globs are for TFRecord shards only; specify a folder or a zip without one.",
            )
    check_one_set(matches)
    return _Contents(whole=partial(_open_chosen_shards, matches, pattern, notice))


def _find_in_file(path: Path, notice: Notice) -> _Contents:
    if path.suffix.lower() == ".zip":
        return _find_in_zip(ZipTree(path), notice)
    if is_file(path) and not is_image(path.name) and is_record_file(path):
        return _Contents(whole=partial(_open_chosen_shards, [path], str(path), notice))
    raise UserError(
        "this file is neither a zip nor a TFRecord",
        where=str(path),
        todo="Specify a folder of class folders, a zip of one, or TFRecord shards.",
    )


def _find_in_folder(path: Path, notice: Notice) -> _Contents:
    tree = DiskTree(path)
    folders, files = tree.entries("")
    if shards := [path / name for name in files if is_shard_name(name)]:
        left_out = [*folders] + [name for name in files if is_image(name) or name.endswith(".zip")]
        if left_out:
            notice(f"{path}: contains shards; ignoring {_first_names(left_out)} next to them")
        return _find_shards(shards, notice)
    zips = {Path(name).stem.lower(): path / name for name in files if name.lower().endswith(".zip")}
    parts: dict[Split, Callable[[], ImageSource]] = {}
    top = _top_folder(tree)
    for split, names in PART_NAMES.items():
        folder = _part_folder(tree, top, names)
        zipped = next((zips[name] for name in names if name in zips), None)
        if folder and zipped:
            raise UserError(
                f"both '{folder}' and '{zipped.name}' are in it",
                where=str(path),
                todo="Remove one of them, or name the intended one in data.path or data.eval_path.",
            )
        part_path = path / folder if folder else zipped
        if part_path:
            parts[split] = partial(_open_part, part_path, split, notice)
    if parts:
        return _Contents(parts=parts)
    return _Contents(whole=partial(_open_tree, tree, top, place_of(tree, top), notice))


def _open_part(path: Path, split: Split, notice: Notice) -> ImageSource:
    """Open a part that is a separate folder or zip; a nested part must be of the same split."""
    contents = _find_in_folder(path, notice) if is_folder(path) else _find_in_file(path, notice)
    opener = contents.parts.get(split, contents.whole)
    if opener is None:
        raise UserError(
            f"its content has the name of a part other than {split}",
            where=str(path),
            todo="Move or rename it, so that the names of folder and content match.",
        )
    return opener()


def _find_in_zip(tree: ZipTree, notice: Notice) -> _Contents:
    top = _top_folder(tree)
    parts: dict[Split, Callable[[], ImageSource]] = {
        split: partial(_open_tree, tree, folder, tree.name, notice)
        for split, names in PART_NAMES.items()
        if (folder := _part_folder(tree, top, names))
    }
    if parts:
        return _Contents(parts=parts)
    return _Contents(whole=partial(_open_tree, tree, top, tree.name, notice))


def _top_folder(tree: Tree) -> str:
    """Return a tree's only folder if it is neither a part nor a class but contains folders."""
    folders, _ = tree.entries("")
    parts = {name for names in PART_NAMES.values() for name in names}
    if len(folders) != 1 or folders[0].lower() in parts:
        return ""
    subfolders, files = tree.entries(folders[0])
    return folders[0] if subfolders and not any(is_image(name) for name in files) else ""


def _part_folder(tree: Tree, top: str, names: Sequence[str]) -> str:
    """Return the folder of a part: one with a part's name that contains folders or shards.

    A single folder `train` of images is a class (a vehicle). Next to a `val`, it is a part whose
    images lack class folders, which is an error.
    """
    folders = {name.lower(): name for name in tree.entries(top)[0]}
    has_all_parts = all(not folders.keys().isdisjoint(part) for part in PART_NAMES.values())
    for name in names:
        if name in folders:
            folder = join(top, folders[name])
            subfolders, files = tree.entries(folder)
            if has_all_parts or subfolders or any(is_shard_name(file) for file in files):
                return folder
    return ""


def _open_tree(tree: DiskTree | ZipTree, root: str, where: str, notice: Notice) -> ImageSource:
    listing = list_classes(tree, root)
    report_irregularities(listing, where, notice)
    source = images_of(tree, listing)
    if listing.empty:
        raise EmptyClasses(listing, where, source)
    return source


def _find_shards(
    shards: Sequence[Path], notice: Notice, shard_opener: _ShardOpener = ImageShards
) -> _Contents:
    parts: dict[Split, Callable[[], ImageSource]] = {}
    for split, names in PART_NAMES.items():
        for name in names:
            part_shards = [path for path in shards if name in _WORD.findall(path.name.lower())]
            if part_shards:
                parts[split] = partial(_open_shard_set, part_shards, notice, shard_opener)
                break
    if parts:
        return _Contents(parts=parts)
    set_names = sorted({match["stem"] for path in shards if (match := SHARD_NAME.match(path.name))})
    if len(set_names) > 1:
        raise UserError(
            f"contains shards of several sets: {_first_names(set_names)}",
            where=str(shards[0].parent),
            todo=f"Specify a glob that matches one of them, for instance '{set_names[0]}-*'.",
        )
    return _Contents(whole=partial(_open_shard_set, list(shards), notice, shard_opener))


def _open_chosen_shards(
    paths: Sequence[Path], pattern: str, notice: Notice, shard_opener: _ShardOpener = ImageShards
) -> ImageSource:
    """Open shards specified individually or by a glob, which may omit some of a set.

    A missing shard that the glob would have matched is an error.
    """
    for gap in shard_gaps(paths):
        if matching_gap := gap.matching(pattern):
            raise matching_gap.error
        notice(f"{gap.folder}: using only the specified {gap.present} of {gap.total} shards")
    return shard_opener(paths, notice)


def _open_shard_set(
    paths: Sequence[Path], notice: Notice, shard_opener: _ShardOpener = ImageShards
) -> ImageSource:
    check_one_set(paths)
    check_none_missing(paths)
    return shard_opener(paths, notice)
