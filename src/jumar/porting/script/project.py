"""The tree that a script belongs to: which module an import means, and its contents."""

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jumar.porting.python2.conversion import to_python3
from jumar.porting.script.module import Module
from jumar.porting.script.source import Unreadable, decode

LARGEST_SCRIPT = 5_000_000
"""Bytes; a larger script is data, and its syntax tree would take gigabytes."""

_MAX_BYTES = 2_000_000
"""Maximum bytes of a module that is read to resolve an import; longer ones are data."""
_MAX_PARSED = 2_000_000
"""Characters of modules that are cached parsed: a tree takes some 40 bytes per character."""
_MAX_KEPT = 256_000_000
"""Bytes of files that are cached, so that none is read twice; those beyond are read again."""


@dataclass(frozen=True)
class Content:
    """The bytes of a file, at most one more than `LARGEST_SCRIPT`, and what reveals a change."""

    data: bytes
    state: tuple[int, int, int]


class Project:
    """The files of a tree, read once, and its modules, parsed when an import names them.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: OrderedDict[str, Module | None] = OrderedDict()
        self._found: dict[tuple[str, str], str | None] = {}
        self._contents: dict[str, Content] = {}
        self._kept = 0
        self._parsed = 0

    def __reduce__(self) -> tuple[type["Project"], tuple[Path]]:
        return Project, (self.root,)

    def content(self, path: str) -> bytes:
        """The bytes of a file, at most one more than `LARGEST_SCRIPT`; read only the first time.

        Raises:
            OSError: It cannot be read, or is a pipe or device, which might never end.
        """
        if path in self._contents:
            return self._contents[path].data
        if not stat.S_ISREG((self.root / path).stat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with (self.root / path).open("rb") as stream:
            content = Content(stream.read(LARGEST_SCRIPT + 1), _state(os.fstat(stream.fileno())))
        if len(content.data) <= LARGEST_SCRIPT and self._kept + len(content.data) <= _MAX_KEPT:
            self._contents[path] = content
            self._kept += len(content.data)
        return content.data

    def read(self, paths: Iterable[str]) -> None:
        """Read files ahead: processes that are forked afterwards share them."""
        for path in paths:
            with suppress(OSError):
                self.content(path)

    def as_read(self, path: str) -> bytes | None:
        """The bytes of a file if it was read whole and has not changed since; else None."""
        content = self._contents.get(path)
        if content is None:
            return None
        try:
            return content.data if _state((self.root / path).lstat()) == content.state else None
        except OSError:
            return None

    def parsed(self, text: str, path: str) -> Module:
        """A script of the tree, parsed; cached for those that import it.

        Raises:
            SyntaxError: Python 3 cannot parse it.
        """
        module = self._modules.get(path)
        if module is None or module.text != text:
            module = Module(text, path, self)
        self._keep(path, module)
        return module

    def find(self, dotted: str, importer: str) -> str | None:
        """The path within the tree of an imported module, or None for modules from elsewhere.

        Args:
            dotted: As imported, with leading dots: `..models.ops`.
            importer: Path of the importing script within the tree.
        """
        key = (dotted, importer.rpartition("/")[0])
        if key not in self._found:
            self._found[key] = self._find(dotted, importer)
        return self._found[key]

    def _find(self, dotted: str, importer: str) -> str | None:
        folder = importer.split("/")[:-1]
        name = dotted.lstrip(".")
        level = len(dotted) - len(name)
        parts = name.split(".") if name else []
        if level:
            if level - 1 > len(folder):
                return None
            return self._file([*folder[: len(folder) - level + 1], *parts])
        # A script sees its own folder first, as Python does, then the folders above it: one of
        # them is what the user puts into PYTHONPATH.
        for depth in range(len(folder), -1, -1):
            path = self._file([*folder[:depth], *parts])
            if path:
                return path
        # The tree is itself the package: `from bert import modeling` within `bert/`.
        if parts and parts[0] == self.root.name:
            return self._file(parts[1:])
        return None

    def _file(self, parts: list[str]) -> str | None:
        if not all(part.isidentifier() for part in parts):
            return None
        path = "/".join(parts)
        for candidate in [f"{path}.py", f"{path}/__init__.py"] if path else ["__init__.py"]:
            if (self.root / candidate).is_file():
                return candidate
        # A folder without __init__.py is a package as well.
        return f"{path}/" if path and (self.root / path).is_dir() else None

    def scripts_in(self, folder: str) -> list[str]:
        """The paths of the scripts in a folder of the tree."""
        full_path = self.root / folder
        try:
            names = sorted(path.name for path in full_path.iterdir() if path.suffix == ".py")
        except OSError:
            return []
        return [f"{folder}/{name}" if folder else name for name in names]

    def module(self, path: str) -> Module | None:
        """The parsed module at a path within the tree, or None if it cannot be read."""
        if path in self._modules:
            self._modules.move_to_end(path)
            return self._modules[path]
        module = None
        try:
            if not path.endswith("/") and (self.root / path).stat().st_size <= _MAX_BYTES:
                text = decode(self.content(path)).text
                module = self._in_python3(text, path)
        except (OSError, Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
            module = None
        self._keep(path, module)
        return module

    def _keep(self, path: str, module: Module | None) -> None:
        before = self._modules.pop(path, None)
        self._parsed += len(module.text if module else "") - len(before.text if before else "")
        self._modules[path] = module
        while self._parsed > _MAX_PARSED and len(self._modules) > 1:
            _, oldest = self._modules.popitem(last=False)
            self._parsed -= len(oldest.text) if oldest else 0

    def _in_python3(self, text: str, path: str) -> Module | None:
        try:
            return Module(text, path, self)
        except SyntaxError:
            converted = to_python3(text)
            return Module(converted.text, path, self) if converted else None

    def member(self, path: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str:
        """The meaning of a name that is taken from a module of the tree.

        Returns:
            A qualified name: of a library (`tensorflow.Session`), or `tree:PATH:NAME` for what the
            tree defines itself, or `tree:PATH` for a module of it.
        """
        if (path, name) in seen:
            return f"tree:{path}:{name}"
        module = self.module(path)
        if module is not None:
            full_name = module.exported(name, seen | {(path, name)})
            if full_name:
                return full_name
        folder = path if path.endswith("/") else path.removesuffix("__init__.py")
        if path.endswith(("/", "__init__.py")):
            inner = self._file([part for part in folder.split("/") if part] + [name])
            if inner:
                return f"tree:{inner}"
        return f"tree:{path}:{name}"


def _state(status: os.stat_result) -> tuple[int, int, int]:
    """A state that changes when a file is written to or replaced."""
    return status.st_ino, status.st_size, status.st_mtime_ns
