"""Class folders: which files in a folder, on disk or in a zip, are images of which class."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import fingerprint
from jumar.ground.errors import UserError
from jumar.ground.paths import unreadable

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif")
_HIDDEN = ("__MACOSX",)
_NAMED_AT_MOST = 5


class Tree(Protocol):
    """Folders and files under one root; a folder is named by its path from there."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    def entries(self, folder: str) -> tuple[Sequence[str], Sequence[str]]:
        """Sorted names of the folders and of the files in a folder, without hidden ones."""
        ...


class DiskTree:
    """A folder on the disk; symbolic links are followed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = str(root)

    def entries(self, folder: str) -> tuple[Sequence[str], Sequence[str]]:
        """Sorted names of the folders and of the files in a folder, without hidden ones.

        Raises:
            UserError: The folder cannot be read, or a link in it that may point to a folder is
                broken: a class on a disk that is not mounted would vanish. A link with a file
                suffix is a file that cannot be read.
        """
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if not is_hidden(entry.name):
                        (folders if self._is_folder(entry) else files).append(entry.name)
        except OSError as error:
            raise unreadable(self.root / folder, error) from error
        return sorted(folders), sorted(files)

    @staticmethod
    def _is_folder(entry: os.DirEntry[str]) -> bool:
        is_lost = entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110 - hot
        if is_lost and not os.path.splitext(entry.name)[1]:  # noqa: PTH122
            raise UserError(
                f"links to '{os.readlink(entry.path)}', which does not exist",  # noqa: PTH115
                where=entry.path,
                todo="Mount or restore what it links to, or remove the link.",
            )
        return entry.is_dir()


class PackedNames:
    """Many names in one block of bytes.

    A million Python strings are a million objects, whose reference counts a forked worker writes
    to, so each worker would soon hold its own copy of all of them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        encoded = [name.encode("utf-8", "surrogateescape") for name in names]
        self._text = b"".join(encoded)
        self._ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        text = self._text[self._ends[index] : self._ends[index + 1]]
        return text.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True, kw_only=True)
class ClassListing:
    """The images of a tree of class folders, class by class.

    Within a folder they are sorted by name, its own before those of its subfolders.
    """

    classes: tuple[str, ...]
    """Sorted by code point, as ImageFolder of torchvision does: `10` comes before `2`."""
    paths: PackedNames
    """Paths from the root of the tree."""
    labels: NDArray[np.int32]
    ignored: Counter[str]
    """How many files of each suffix are not images, or lie next to the class folders; hidden ones
    are not counted."""
    root: str = ""
    """The folder of the tree that all paths begin with."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the labels and the paths below `root`, the same for a folder and a zip
        of it; see `Fingerprinted`.
        """
        below = len(join(self.root, ""))
        names = "\0".join(path[below:] for path in self.paths)
        return fingerprint(names.encode("utf-8", "surrogateescape"), self.labels.tobytes())

    def key(self, index: int) -> str:
        """The path of an image below `root`, the same in a folder and in a zip of it."""
        return self.paths[index][len(join(self.root, "")) :]


class ListedImages:
    """Facts about images in class folders, known before any is read.

    Attributes:
        classes: Names of the class folders in label order.
    """

    def __init__(self, listing: ClassListing) -> None:
        self._listing = listing
        self.classes: Sequence[str] = listing.classes

    def __len__(self) -> int:
        return len(self._listing.labels)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the images' paths and labels; see `Fingerprinted`."""
        return self._listing.fingerprint

    @property
    def labels(self) -> NDArray[np.int32]:
        """The label of each image; see `Listed`."""
        return self._listing.labels

    def key(self, index: int) -> str:
        """The path of an image below the class folders; see `Listed`."""
        return self._listing.key(index)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is not data: a dot file, or macOS's folder in zips."""
    return name.startswith(".") or name in _HIDDEN


def is_image(name: str) -> bool:
    """Whether a file counts as an image, by its suffix in upper or lower case."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def ending_of(path: str) -> str:
    """The suffix of a file's name in lower case; `without a suffix` if it has none."""
    return os.path.splitext(path)[1].lower() or "without a suffix"  # noqa: PTH122 - a million names


def by_ending(counts: Counter[str]) -> str:
    """`3 .txt, 1 .tif`: the skipped files by suffix, most frequent first."""
    descriptions = [f"{count} {ending}" for ending, count in counts.most_common(_NAMED_AT_MOST)]
    return ", ".join(descriptions + (["..."] if len(counts) > _NAMED_AT_MOST else []))


def join(folder: str, name: str) -> str:
    """The path of an entry in a folder of a tree."""
    return f"{folder}/{name}" if folder else name


def list_classes(tree: Tree, root: str = "") -> ClassListing:
    """Every image in the class folders of a folder, including their sub-folders.

    Raises:
        UserError: There are no class folders, or some hold no image.
    """
    folders, loose_files = tree.entries(root)
    where = join(tree.name, root) if root else tree.name
    if not folders:
        raise _no_classes(loose_files, where)
    paths: list[str] = []
    labels: list[int] = []
    empty: list[str] = []
    ignored = Counter(map(ending_of, loose_files))
    for label, name in enumerate(folders):
        count_before, other_endings = len(paths), Counter[str]()
        for path in files_below(tree, join(root, name)):
            if is_image(path):
                paths.append(path)
            else:
                other_endings[ending_of(path)] += 1
        ignored += other_endings
        count = len(paths) - count_before
        labels.extend([label] * count)
        if not count:
            empty.append(
                f"'{name}'" + (f" (with {by_ending(other_endings)})" if other_endings else "")
            )
    if empty:
        raise _empty_classes(empty, len(folders), where)
    return ClassListing(
        classes=tuple(folders),
        paths=PackedNames(paths),
        labels=np.array(labels, dtype=np.int32),
        ignored=ignored,
        root=root,
    )


def files_below(tree: Tree, folder: str) -> Iterator[str]:
    """Paths of all files in a folder of a tree, its own before those of its sub-folders.

    Raises:
        UserError: Folders are nested endlessly.
    """
    pending = [(folder, 0)]
    while pending:
        current, depth = pending.pop()
        if depth > 32:
            raise UserError(
                "folders are nested more than 32 deep; does a symbolic link point to a parent?",
                where=join(tree.name, current),
            )
        folders, files = tree.entries(current)
        yield from (join(current, name) for name in files)
        pending.extend((join(current, name), depth + 1) for name in reversed(folders))


def _no_classes(loose_files: Sequence[str], where: str) -> UserError:
    suffixes = ", ".join(IMAGE_SUFFIXES)
    if any(is_image(name) for name in loose_files):
        return UserError(
            "the images are not in class folders, so their classes are unknown",
            where=where,
            todo="Put the images of each class into a folder with the name of the class.",
        )
    content = f", only {by_ending(Counter(map(ending_of, loose_files)))}" if loose_files else ""
    return UserError(
        f"contains neither class folders nor TFRecord shards{content}",
        where=where,
        todo=f"Expected one folder per class with images ({suffixes}), or train-*-of-* shards.",
    )


def _empty_classes(empty: Sequence[str], total: int, where: str) -> UserError:
    names = ", ".join(empty[:_NAMED_AT_MOST])
    more = f" and {len(empty) - _NAMED_AT_MOST} more" if len(empty) > _NAMED_AT_MOST else ""
    verb = "holds" if len(empty) == 1 else "hold"
    return UserError(
        f"{len(empty)} of {total} class folders {verb} no image: {names}{more}",
        where=where,
        todo=f"Put images ({', '.join(IMAGE_SUFFIXES)}) into it, or remove the folder.",
    )
