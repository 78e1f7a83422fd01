"""Class folders: lists the images of each class in a folder, on disk or in a zip."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import ImageSource, Notice, fingerprint
from jumar.ground.errors import UserError
from jumar.ground.paths import unreadable
from jumar.ground.text import counted

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif")
_HIDDEN = ("__MACOSX",)
_MAX_NAMED = 5


class Tree(Protocol):
    """Folders and files below a root; a folder is identified by its path relative to the root."""

    @property
    def name(self) -> str:
        """The tree's name in messages."""
        ...

    def entries(self, folder: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the sorted names of the folders and the files in a folder, without hidden ones."""
        ...


class DiskTree:
    """A folder on the disk; symbolic links are followed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = str(root)

    def entries(self, folder: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the sorted names of the folders and the files in a folder, without hidden ones.

        Raises:
            UserError: The folder cannot be read, or a link that may point to a folder is broken: a
                class on an unmounted disk would silently be missing. A broken link with a file
                suffix counts as a file.
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
        is_broken_link = entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110 - hot
        if is_broken_link and not os.path.splitext(entry.name)[1]:  # noqa: PTH122
            raise UserError(
                f"links to '{os.readlink(entry.path)}', which does not exist",  # noqa: PTH115
                where=entry.path,
                todo="Mount or restore what it links to, or remove the link.",
            )
        return entry.is_dir()


class PackedNames:
    """Many names in one block of bytes.

    A forked worker modifies the reference counts of Python strings, so with a million of them each
    worker would soon have its own copy of all.
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

    Within a folder, images are sorted by name, and precede those of its subfolders.
    """

    classes: tuple[str, ...]
    """Sorted by code point, as in torchvision's ImageFolder: `10` comes before `2`."""
    paths: PackedNames
    """Paths from the root of the tree."""
    labels: NDArray[np.int32]
    ignored: Counter[str]
    """Number of files by suffix that are not images, among those with a class; hidden files are not
    counted."""
    outside: Counter[str] = field(default_factory=Counter[str])
    """Number of files by suffix that are not in a class folder."""
    empty: tuple[str, ...] = ()
    """The classes without images, as they are named in messages."""
    root: str = ""
    """The folder of the tree that all paths begin with."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of labels and paths below `root`, equal for a folder and a zip of it; see
        `Fingerprinted`.
        """
        below = len(join(self.root, ""))
        names = "\0".join(path[below:] for path in self.paths)
        return fingerprint(names.encode("utf-8", "surrogateescape"), self.labels.tobytes())

    def key(self, index: int) -> str:
        """Return the path of an image below `root`, the same in a folder and in a zip of it."""
        return self.paths[index][len(join(self.root, "")) :]


class ListedImages:
    """Metadata of images in class folders, available before any is read.

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
        """Return the path of an image relative to the class folders; see `Listed`."""
        return self._listing.key(index)


def is_hidden(name: str) -> bool:
    """Return whether a file or folder is not data: a dot file, or macOS's folder in zips."""
    return name.startswith(".") or name in _HIDDEN


def is_image(name: str) -> bool:
    """Return whether a file counts as an image, by its suffix in upper or lower case."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def ending_of(path: str) -> str:
    """Return the suffix of a file's name in lower case; `without a suffix` if it has none."""
    return os.path.splitext(path)[1].lower() or "without a suffix"  # noqa: PTH122 - a million names


def by_ending(counts: Counter[str]) -> str:
    """Describe files by suffix, most frequent first: `3 .txt, 1 .tif`."""
    descriptions = [f"{count} {suffix}" for suffix, count in counts.most_common(_MAX_NAMED)]
    return ", ".join(descriptions + (["..."] if len(counts) > _MAX_NAMED else []))


def join(folder: str, name: str) -> str:
    """Return the path of an entry in a folder of a tree."""
    return f"{folder}/{name}" if folder else name


def place_of(tree: Tree, folder: str) -> str:
    """Return the path of a folder of a tree, or of the tree itself, for messages."""
    return join(tree.name, folder) if folder else tree.name


def unlabelled(
    paths: Sequence[str], ignored: Counter[str] | None = None, root: str = ""
) -> ClassListing:
    """Return a listing of files without classes, in the given order, all with label 0.

    Args:
        paths: Paths from the root of the tree.
        ignored: See `ClassListing`.
        root: See `ClassListing`.
    """
    return ClassListing(
        classes=(),
        paths=PackedNames(paths),
        labels=np.zeros(len(paths), dtype=np.int32),
        ignored=ignored or Counter(),
        root=root,
    )


class EmptyClasses(UserError):
    """Some class folders contain no image.

    Args:
        listing: The listing of the class folders.
        where: The folder that contains them.
        source: The images of the other classes; the labels are those with the empty ones.
    """

    def __init__(self, listing: ClassListing, where: str, source: ImageSource) -> None:
        empty, total = listing.empty, len(listing.classes)
        names = ", ".join(empty[:_MAX_NAMED])
        more = f" and {len(empty) - _MAX_NAMED} more" if len(empty) > _MAX_NAMED else ""
        verb = "contains" if len(empty) == 1 else "contain"
        super().__init__(
            f"{len(empty)} of {total} class folders {verb} no image: {names}{more}",
            where=where,
            todo=f"Add images ({', '.join(IMAGE_SUFFIXES)}), or remove each empty folder.",
        )
        self.source = source


def list_classes(tree: Tree, root: str = "") -> ClassListing:
    """List every image in the class folders of a folder, including their subfolders.

    Raises:
        UserError: There are no class folders.
    """
    folders, loose_files = tree.entries(root)
    where = place_of(tree, root)
    if not folders:
        raise _no_classes(loose_files, where)
    paths: list[str] = []
    labels: list[int] = []
    empty: list[str] = []
    ignored = Counter[str]()
    for label, name in enumerate(folders):
        count_before, other_suffixes = len(paths), Counter[str]()
        for path in files_below(tree, join(root, name)):
            if is_image(path):
                paths.append(path)
            else:
                other_suffixes[ending_of(path)] += 1
        ignored += other_suffixes
        count = len(paths) - count_before
        labels.extend([label] * count)
        if not count:
            empty.append(
                f"'{name}'" + (f" (with {by_ending(other_suffixes)})" if other_suffixes else "")
            )
    return ClassListing(
        classes=tuple(folders),
        paths=PackedNames(paths),
        labels=np.array(labels, dtype=np.int32),
        ignored=ignored,
        outside=Counter(map(ending_of, loose_files)),
        empty=tuple(empty),
        root=root,
    )


def report_irregularities(listing: ClassListing, where: str, notice: Notice) -> None:
    """Report skipped files, and classes whose names differ only in case."""
    if listing.ignored:
        count, kinds = listing.ignored.total(), by_ending(listing.ignored)
        notice(f"{where}: skipped {counted(count, 'non-image file')}: {kinds}")
    if listing.outside:
        count, kinds = listing.outside.total(), by_ending(listing.outside)
        notice(f"{where}: skipped {counted(count, 'file')} outside the classes: {kinds}")
    same_names: defaultdict[str, list[str]] = defaultdict(list)
    for name in listing.classes:
        same_names[name.casefold()].append(name)
    for names in same_names.values():
        if len(names) > 1:
            notice(
                f"{where}: {' and '.join(names)} differ only in case; treated as separate classes"
            )


def files_below(tree: Tree, folder: str) -> Iterator[str]:
    """Yield the paths of all files in a folder of a tree, before those in its subfolders.

    Raises:
        UserError: Folders are nested too deeply.
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
