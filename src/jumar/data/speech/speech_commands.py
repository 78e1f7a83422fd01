"""Spoken words in the layout of Speech Commands: one folder of WAV files per word.

Data set: Warden, "Speech Commands: A Dataset for Limited-Vocabulary Speech Recognition",
arXiv 1804.03209. The split by speaker is the same as in `which_set` of its example code, which
ARM-software/ML-KWS-for-MCU uses unchanged (input_data.py).

A path can be
- a folder or a zip of such word folders, divided by the lists `validation_list.txt` and
  `testing_list.txt` if it contains them, otherwise by speaker;
- a folder or zip with the parts `train` and `val` (or `validation`, `eval`) or `test` (or
  `testing`); in a folder they may also be `train.zip` and `val.zip`.

Folders within a word's folder are also searched, so that unknown words may be in `unknown/WORD`.
TFRecord shards are not supported: clips are small, of equal length and decoded at most once into
memory, so shards would save nothing; a zip is also a single file.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.class_folders import (
    DiskTree,
    PackedNames,
    by_ending,
    ending_of,
    files_below,
    join,
    place_of,
    unlabelled,
)
from jumar.data.images.image_zip import ZipTree, images_of
from jumar.data.images.listed import Chosen
from jumar.data.samples import (
    CorruptRecord,
    ImageSource,
    Notice,
    Record,
    fingerprint,
    fingerprint_of,
)
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_file, is_folder, missing
from jumar.ground.text import counted

Part = Literal["training", "validation", "testing"]

SILENCE, UNKNOWN = "_silence_", "_unknown_"
BACKGROUND_FOLDER = "_background_noise_"
PARTS: Mapping[Part, Sequence[str]] = {
    "training": ("train", "training"),
    "validation": ("val", "validation", "eval"),
    "testing": ("test", "testing"),
}
"""Names of a part's folder or zip, in any case; the first one that exists is used."""
LISTS: Mapping[Part, str] = {"validation": "validation_list.txt", "testing": "testing_list.txt"}

_MAX_BUCKET = 2**27 - 1
_REPETITION_MARK = "_nohash_"
_NUMBERED_CLIP = re.compile(r"(.+)_\d+\.wave?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Speech:
    """The clips of one part, undecoded.

    Attributes:
        source: Reads a clip or a noise by its index; the clips come first.
        words: Names of the word folders in lower case, sorted.
        word_of: The index in `words` of each clip's word, int32 [clips].
        noises: Number of files of background noise, which follow the clips.
        names: Paths of the clips relative to the folder of the word folders.
    """

    source: ImageSource
    words: Sequence[str]
    word_of: NDArray[np.int32]
    noises: int
    names: Sequence[str] | PackedNames = ()

    def chosen(self, clips: NDArray[np.int64], fingerprint: str = "") -> "Speech":
        """Return some of the clips, with all noises.

        Args:
            clips: Indices of the clips.
            fingerprint: Fingerprint of the selection; by default, of all clips and the indices.
        """
        noises = np.arange(len(self.word_of), len(self.word_of) + self.noises)
        return replace(
            self,
            source=Chosen(self.source, np.concatenate([clips, noises]), fingerprint),
            word_of=self.word_of[clips],
            names=[self.names[clip] for clip in clips.tolist()],
        )

    def read_noise(self, number: int) -> Record:
        """Read a file of background noise; raises `CorruptRecord` if that fails."""
        return self.source.read(len(self.word_of) + number)


@dataclass(frozen=True, kw_only=True)
class _WordTree:
    """A folder of word folders in a tree."""

    tree: DiskTree | ZipTree
    root: str

    @property
    def name(self) -> str:
        return place_of(self.tree, self.root)


def which_part(filename: str, *, validation: float = 10.0, testing: float = 10.0) -> Part:
    """Return the part of a clip by its speaker, as in the original's `which_set`.

    Args:
        filename: Name of the file, in which the text before `_nohash_` identifies the speaker.
        validation: Percentage of the speakers for validation.
        testing: Percentage of the speakers for testing.
    """
    speaker = re.sub(r"_nohash_.*$", "", filename.rsplit("/", 1)[-1])
    digest = hashlib.sha1(
        speaker.encode("utf-8", "surrogateescape"), usedforsecurity=False
    ).hexdigest()
    percentage = (int(digest, 16) % (_MAX_BUCKET + 1)) * (100.0 / _MAX_BUCKET)
    if percentage < validation:
        return "validation"
    return "testing" if percentage < testing + validation else "training"


def speaker_groups(names: Sequence[str] | PackedNames) -> list[str] | None:
    """Return the speaker of each clip; None if the names do not identify speakers.

    The text before `_nohash_` is the speaker; or the text before the last `_` and a number, if it
    occurs with several words: `yes/12_03.wav` and `no/12_01.wav` are of speaker 12, but `yes` in
    `yes/yes_1.wav` is no speaker.
    """
    files = [name.rpartition("/")[2] for name in names]
    if any(_REPETITION_MARK in file for file in files):
        return [file.partition(_REPETITION_MARK)[0] for file in files]
    matches = [_NUMBERED_CLIP.fullmatch(file) for file in files]
    if not all(matches):
        return None
    groups = [match[1] for match in matches if match]
    words: defaultdict[str, set[str]] = defaultdict(set)
    for name, group in zip(names, groups, strict=True):
        words[group].add(name.partition("/")[0])
    several_count = sum(len(spoken) > 1 for spoken in words.values())
    return groups if len(words) > 2 and 2 * several_count > len(words) else None


def open_speech(path: str, part: Part, *, whole: bool = False, notice: Notice) -> Speech:
    """Open the clips of one part of a data set.

    Args:
        path: A folder or zip, see the module's docstring; `~` is expanded.
        part: The part to open.
        whole: Whether to use all of an undivided set instead of dividing it by speaker.
        notice: Called with which files were skipped.

    Raises:
        UserError: The path does not exist, has no such part, or the part has no clips.
    """
    top = _top(path)
    parts = _part_trees(top)
    if parts:
        if part not in parts:
            raise UserError(
                f"it has no {part} part",
                where=path,
                todo=f"It has: {', '.join(parts)}. Set data.eval_part or data.eval_path.",
            )
        return _speech(parts[part], notice, lambda _: True, parent=top)
    if whole:
        return _speech(top, notice, lambda _: True)
    lists = _read_lists(top)
    if lists:
        missing_names = {name for name, clip_part in lists.items() if clip_part == part}

        def listed(name: str) -> bool:
            missing_names.discard(name)
            return lists.get(name, "training") == part

        speech = _speech(top, notice, listed)
        if missing_names:
            examples = ", ".join(sorted(missing_names)[:3]) + (
                ", ..." if len(missing_names) > 3 else ""
            )
            notice(
                f"{top.name}: {len(missing_names)} clips listed in {LISTS[part]} are missing: "
                f"{examples}"
            )
        return speech
    return _speech(top, notice, lambda name: which_part(name) == part)


def _top(path: str) -> _WordTree:
    if not path:
        raise UserError(
            "no speech data set",
            where="data.path",
            todo="Set data.path to a folder or zip with a folder of WAV files for each word; "
            "`jumar data keywords --to DIR` creates one with a speech synthesiser.",
        )
    expanded_path = expanded(path)
    if is_folder(expanded_path):
        return _unwrapped(DiskTree(expanded_path))
    if is_file(expanded_path) and expanded_path.suffix.lower() == ".zip":
        return _unwrapped(ZipTree(expanded_path))
    if exists(expanded_path):
        raise UserError(
            "neither a folder nor a zip",
            where=path,
            todo="Unpack other archives first: tar -xf FILE -C FOLDER",
        )
    raise missing(expanded_path)


def _unwrapped(tree: DiskTree | ZipTree) -> _WordTree:
    """Descend into the only folder of a tree, if it contains only folders."""
    folders, files = tree.entries("")
    if len(folders) == 1 and not files:
        subfolders, clips = tree.entries(folders[0])
        if subfolders and not any(map(_is_clip, clips)):
            return _WordTree(tree=tree, root=folders[0])
    return _WordTree(tree=tree, root="")


def _part_trees(top: _WordTree) -> Mapping[Part, _WordTree]:
    """Return the parts of a set; empty if it is undivided."""
    folders, files = top.tree.entries(top.root)
    folders_by_name = {name.lower(): name for name in folders}
    zips = {Path(name).stem.lower(): name for name in files if name.lower().endswith(".zip")}
    trees: dict[Part, _WordTree] = {}
    for part, names in PARTS.items():
        for name in names:
            if (
                name in folders_by_name
                and top.tree.entries(join(top.root, folders_by_name[name]))[0]
            ):
                trees[part] = replace(top, root=join(top.root, folders_by_name[name]))
            elif name in zips and isinstance(top.tree, DiskTree):
                trees[part] = _unwrapped(ZipTree(top.tree.root / top.root / zips[name]))
            else:
                continue
            break
    # A single folder `test` or `train` may be a word.
    return trees if len(trees) > 1 else {}


def _is_clip(name: str) -> bool:
    return name.lower().endswith((".wav", ".wave"))


def _speech(
    word_tree: _WordTree,
    notice: Notice,
    is_in_part: Callable[[str], bool],
    *,
    parent: _WordTree | None = None,
) -> Speech:
    """Open the clips of a word tree whose relative path is in the part."""
    tree, root = word_tree.tree, word_tree.root
    folders, loose_files = tree.entries(root)
    words = sorted({name.lower() for name in folders if name.lower() != BACKGROUND_FOLDER})
    paths: list[str] = []
    word_of: list[int] = []
    known_files = (*LISTS.values(), "LICENSE", "README.md")
    ignored = Counter(ending_of(name) for name in loose_files if name not in known_files)
    for folder in folders:
        if folder.lower() == BACKGROUND_FOLDER:
            continue
        for path in files_below(tree, join(root, folder)):
            if not _is_clip(path):
                ignored[ending_of(path)] += 1
            elif is_in_part(path[len(root) + 1 if root else 0 :]):
                paths.append(path)
                word_of.append(words.index(folder.lower()))
    if not paths:
        raise UserError(
            "contains no WAV file of this part",
            where=word_tree.name,
            todo="Expected one folder for each word with WAV files in it.",
        )
    if ignored:
        count, kinds = ignored.total(), by_ending(ignored)
        notice(f"{word_tree.name}: skipped {counted(count, 'file')} outside the words: {kinds}")
    noise_tree, noises = _noise_paths(word_tree, parent)
    clips = images_of(tree, unlabelled(paths if noise_tree is not tree else [*paths, *noises]))
    source: ImageSource = clips
    if noises and noise_tree is not tree:
        source = _Joined(clips, images_of(noise_tree, unlabelled(noises)))
    return Speech(
        source=source,
        words=words,
        word_of=np.array(word_of, dtype=np.int32),
        noises=len(noises),
        names=PackedNames([path[len(join(root, "")) :] for path in paths]),
    )


def _noise_paths(
    word_tree: _WordTree, parent: _WordTree | None
) -> tuple[DiskTree | ZipTree, list[str]]:
    """Return the files in the folder of background noise, in the part or next to the parts."""
    for candidate in (word_tree, parent):
        if candidate is None:
            continue
        for folder in candidate.tree.entries(candidate.root)[0]:
            if folder.lower() == BACKGROUND_FOLDER:
                below = files_below(candidate.tree, join(candidate.root, folder))
                return candidate.tree, [path for path in below if _is_clip(path)]
    return word_tree.tree, []


class _Joined:
    """Two sources, concatenated."""

    classes: Sequence[str] = ()

    def __init__(self, first: ImageSource, second: ImageSource) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of both sources; see `Fingerprinted`."""
        parts = (fingerprint_of(source).encode() for source in (self._first, self._second))
        return fingerprint(*parts)

    def read(self, index: int) -> Record:
        """Read one record; raises `CorruptRecord` if that fails."""
        if index < len(self._first):
            return self._first.read(index)
        return self._second.read(index - len(self._first))


def _read_lists(top: _WordTree) -> Mapping[str, Part]:
    """Read the part of each listed clip, by its path relative to the top; empty without lists."""
    files = top.tree.entries(top.root)[1]
    listed_parts: list[Part] = [part for part, name in LISTS.items() if name in files]
    source = images_of(top.tree, unlabelled([join(top.root, LISTS[part]) for part in listed_parts]))
    parts: dict[str, Part] = {}
    for index, part in enumerate(listed_parts):
        try:
            text = source.read(index).encoded.decode()
        except (CorruptRecord, UnicodeDecodeError) as error:
            raise UserError(
                f"the list of the clips for {part} cannot be read: {error}", where=top.name
            ) from error
        parts.update((line.strip(), part) for line in text.splitlines() if line.strip())
    return parts
