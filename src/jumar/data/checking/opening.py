"""Opens the data to check: detects its kind, and finds its parts."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from jumar.data.checking.item import CheckedPart
from jumar.data.checking.kinds import Kind
from jumar.data.checking.pictures import PictureReader
from jumar.data.images.class_folders import EmptyClasses, is_hidden, is_image
from jumar.data.images.image_shards import is_shard_name
from jumar.data.images.listed import Listed
from jumar.data.images.picture_tree import open_pictures
from jumar.data.images.sources import Split, is_registered, open_source, splits_of
from jumar.data.samples import ImageSource, Notice
from jumar.data.text.labelled_parts import Part, TextData, part_file
from jumar.data.text.sentence_files import SentenceData
from jumar.ground.errors import UserError
from jumar.ground.paths import expanded, is_file, is_folder, missing, store_url

_MAX_NAMES = 20_000
"""Maximum number of file names used to detect the kind; a data set is of one kind."""


@dataclass(frozen=True, kw_only=True)
class CheckedData:
    """The location and kind of the data to check.

    Attributes:
        kind: The kind; empty to detect it.
        path: Training data, or all data.
        eval_path: Evaluation data if stored elsewhere; `none` to check none.
        labels: Label files of outlines, if stored elsewhere.
        eval_labels: The same for evaluation.
        sentences: Columns of labelled texts.
    """

    kind: Kind | Literal[""] = ""
    path: str
    eval_path: str = ""
    labels: str = ""
    eval_labels: str = ""
    sentences: SentenceData = field(default_factory=SentenceData)


def open_parts(data: CheckedData, notice: Notice) -> tuple[Kind, list[CheckedPart]]:
    """Return the kind of the data and its parts.

    Raises:
        UserError: There is no data that can be checked at the path.
    """
    kind = data.kind or kind_of(data.path, notice)
    eval_path = "" if data.eval_path == "none" else data.eval_path
    if kind in ("images", "pictures"):
        parts = _open_images(data.path, eval_path, kind, notice)
    elif kind == "clips":
        from jumar.data.checking.sounds import open_clips

        parts = open_clips(data.path, eval_path, notice)
    elif kind == "outlines":
        from jumar.data.checking.outlines import open_outlined

        parts = open_outlined(
            data.path, eval_path, labels=data.labels, eval_labels=data.eval_labels, notice=notice
        )
    else:
        parts = _open_texts(data, kind, eval_path, notice)
    return kind, parts[:1] if data.eval_path == "none" else parts


def kind_of(path: str, notice: Notice = lambda _: None) -> Kind:
    """Detect the kind of data at a path by its file names.

    Args:
        path: The path.
        notice: Called if images may have classes but are not checked for them.

    Raises:
        UserError: There are no files, or none of a known kind.
    """
    if (
        is_registered(path)
        or store_url(path) is not None
        or any(character in path for character in "*?[")
    ):
        return "images"
    expanded_path = expanded(path)
    names = _names(expanded_path)
    pictures = [name for name in names if is_image(name)]
    stems = {Path(name).stem.lower() for name in pictures}
    labels = [name for name in names if _is_label_of_picture(name, stems)]
    endings = {Path(name).suffix.lower() for name in names}
    if any(name.lower().endswith((".wav", ".wave")) for name in names):
        return "clips"
    if pictures and 2 * len(labels) >= len(pictures):
        return "outlines"
    if pictures or any(is_shard_name(Path(name).name) for name in names):
        return "images" if _has_classes(path, notice) else "pictures"
    if endings & {".tsv", ".jsonl"}:
        return "sentences"
    if ".json" in endings:
        return "questions"
    if endings & {".txt", ".conll", ".bio", ".bmes", ".char"}:
        return "tagged"
    raise UserError(
        "has no data of a known kind",
        where=path,
        todo="Known: images, WAV files, TFRecord shards, .tsv, .jsonl and .json of texts, tagged "
        "tokens in .txt. Set the kind with --kind.",
    )


def _names(root: Path) -> list[str]:
    """Return the names of files below a path, including those in zip files."""
    if is_file(root):
        return _names_in_zip(root) if root.suffix.lower() == ".zip" else [root.name]
    if not is_folder(root):
        raise missing(root)
    names: list[str] = []
    for path in islice(root.rglob("*"), _MAX_NAMES):
        if any(is_hidden(part) for part in path.relative_to(root).parts):
            continue
        if path.suffix.lower() == ".zip":
            names += _names_in_zip(path)
        elif path.suffix or is_shard_name(path.name):
            names.append(str(path.relative_to(root)))
    return names


def _names_in_zip(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist()[:_MAX_NAMES] if not is_hidden(name)]
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise UserError(f"not a zip file, or damaged: {error}", where=str(path)) from error


def _is_label_of_picture(name: str, stems: set[str]) -> bool:
    path = Path(name)
    if path.suffix.lower() not in (".txt", ".json", ".mat"):
        return False
    stem = path.stem.lower()
    return any(stem.removeprefix(prefix) in stems for prefix in ("", "gt_", "poly_gt_", "label_"))


def _has_classes(path: str, notice: Notice) -> bool:
    try:
        return len(open_source(path, "train").classes) > 0
    except UserError as error:
        if isinstance(error, EmptyClasses) and _has_several_classes(error.source):
            return True
        try:
            open_pictures(path, "train")
        except UserError:
            return True  # so that the error about the class folders is reported
        if isinstance(error, EmptyClasses):
            notice(f"checked without classes (--kind images): {error.where}: {error.what}")
        return False


def _has_several_classes(source: ImageSource) -> bool:
    return isinstance(source, Listed) and np.unique(source.labels).size > 1


def _open_with_empty_classes(path: str, split: Split, notice: Notice) -> ImageSource:
    """Open images with classes, of which some may be empty: the check reports those itself."""
    try:
        return open_source(path, split, notice=notice)
    except EmptyClasses as error:
        if not len(error.source):
            raise
        return error.source


def _open_images(path: str, eval_path: str, kind: Kind, notice: Notice) -> list[CheckedPart]:
    def open_part(part_path: str, split: Split) -> CheckedPart:
        name = "training" if split == "train" else "evaluation"
        if kind == "pictures":
            pictures = open_pictures(part_path, split, notice=notice)
            return CheckedPart(name=name, reader=PictureReader(pictures, labelled=False))
        source = _open_with_empty_classes(part_path, split, notice)
        return CheckedPart(name=name, reader=PictureReader(source), classes=source.classes)

    parts = [open_part(path, "train")]
    if eval_path:
        parts.append(open_part(eval_path, "eval"))
    elif kind == "images" and "eval" in splits_of(path):
        parts.append(open_part(path, "eval"))
    return parts


def _open_texts(data: CheckedData, kind: Kind, eval_path: str, notice: Notice) -> list[CheckedPart]:
    from jumar.data.checking.texts import checked_questions, checked_sentences, checked_tagged
    from jumar.data.text import entity_files, reading_files, sentence_files

    suffixes = {
        "sentences": sentence_files.SUFFIXES,
        "tagged": entity_files.SUFFIXES,
        "questions": reading_files.SUFFIXES,
    }[kind]
    parts: list[CheckedPart] = []
    for name, path in _text_files(data.path, eval_path, suffixes):
        if kind == "sentences":
            parts.append(checked_sentences(path, name, data.sentences))
        elif kind == "tagged":
            parts.append(checked_tagged(path, name))
        else:
            parts.append(checked_questions(path, name, notice))
    return parts


def _text_files(path: str, eval_path: str, suffixes: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the name and file of each part; a folder may lack one of them."""
    files: list[tuple[str, Path]] = []
    faults: list[UserError] = []
    sides: Sequence[tuple[Part, str]] = (("train", "training"), ("eval", "evaluation"))
    for part, name in sides:
        try:
            file = part_file(TextData(path=path, eval_path=eval_path), part, suffixes)
        except UserError as error:
            if part == "eval" and eval_path:
                raise
            faults.append(error)
        else:
            if file is not None:
                files.append((name, file))
    if not files:
        raise faults[0]
    return files
