"""The tree that a script belongs to: finds and reads the modules that scripts import."""

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

MAX_SCRIPT_BYTES = 5_000_000
"""Maximum size of a script: a larger file is data, and its syntax tree would take gigabytes."""

_MAX_MODULE_BYTES = 2_000_000
"""Maximum size of a module that is read to resolve an import; larger ones are data."""
_MAX_PARSED_CHARS = 2_000_000
"""Maximum length of all cached parsed modules: a tree takes some 40 bytes per character."""
_MAX_CACHED_BYTES = 256_000_000
"""Maximum size of all cached files, which are read once; files beyond it are read again."""


@dataclass(frozen=True)
class Content:
    """The first `MAX_SCRIPT_BYTES + 1` bytes of a file, and a state that reveals later changes."""

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
        self._cached_bytes = 0
        self._parsed_chars = 0

    def __reduce__(self) -> tuple[type["Project"], tuple[Path]]:
        return Project, (self.root,)

    def content(self, path: str) -> bytes:
        """The first `MAX_SCRIPT_BYTES + 1` bytes of a file; cached if that is the whole file.

        Raises:
            OSError: It cannot be read, or is a pipe or device, which might never end.
        """
        if path in self._contents:
            return self._contents[path].data
        if not stat.S_ISREG((self.root / path).stat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with (self.root / path).open("rb") as stream:
            content = Content(stream.read(MAX_SCRIPT_BYTES + 1), _state(os.fstat(stream.fileno())))
        size = len(content.data)
        if size <= MAX_SCRIPT_BYTES and self._cached_bytes + size <= _MAX_CACHED_BYTES:
            self._contents[path] = content
            self._cached_bytes += size
        return content.data

    def read(self, paths: Iterable[str]) -> None:
        """Read files in advance: processes that are forked later share them."""
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
        """Parse a script of the tree; the result is cached for scripts that import it.

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
            dotted: The imported name, including leading dots: `..models.ops`.
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
        # As in Python, the script's own folder comes first; then the folders above it, one of which
        # the user adds to PYTHONPATH.
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
        with suppress(OSError, Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
            if not path.endswith("/") and (self.root / path).stat().st_size <= _MAX_MODULE_BYTES:
                module = self._in_python3(decode(self.content(path)).text, path)
        self._keep(path, module)
        return module

    def _keep(self, path: str, module: Module | None) -> None:
        replaced = self._modules.pop(path, None)
        self._parsed_chars += len(module.text) if module else 0
        self._parsed_chars -= len(replaced.text) if replaced else 0
        self._modules[path] = module
        while self._parsed_chars > _MAX_PARSED_CHARS and len(self._modules) > 1:
            _, oldest = self._modules.popitem(last=False)
            self._parsed_chars -= len(oldest.text) if oldest else 0

    def _in_python3(self, text: str, path: str) -> Module | None:
        try:
            return Module(text, path, self)
        except SyntaxError:
            converted = to_python3(text)
            return Module(converted.text, path, self) if converted else None

    def member(self, path: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str:
        """The qualified name of a member of one of the tree's modules.

        Returns:
            A name in a library (`tensorflow.Session`), `tree:PATH:NAME` for a definition in the
            tree, or `tree:PATH` for a module of the tree.
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
