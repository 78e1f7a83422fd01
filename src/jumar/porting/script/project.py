"""The tree that a script belongs to: which module an import means, and what that module gives."""

from collections import OrderedDict
from pathlib import Path

from jumar.porting.python2.conversion import to_python3
from jumar.porting.script.module import Module
from jumar.porting.script.source import Unreadable, decode

_MOST_BYTES = 2_000_000
"""Of a module that is read to resolve an import of another; longer ones are data."""
_MOST_MODULES = 64
"""Parsed modules kept at a time: a module of 5,000 lines takes some 10 MB."""


class Project:
    """The modules of a tree, read when an import names them.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: OrderedDict[str, Module | None] = OrderedDict()
        self._found: dict[tuple[str, str], str | None] = {}

    def __reduce__(self) -> tuple[type["Project"], tuple[Path]]:
        return Project, (self.root,)

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
            found = self._file([*folder[:depth], *parts])
            if found:
                return found
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

    def module(self, path: str) -> Module | None:
        """The parsed module at a path within the tree, or None if it cannot be read."""
        if path in self._modules:
            self._modules.move_to_end(path)
            return self._modules[path]
        module = None
        try:
            if not path.endswith("/") and (self.root / path).stat().st_size <= _MOST_BYTES:
                text = decode((self.root / path).read_bytes()).text
                module = self._parsed(text, path)
        except (OSError, Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
            module = None
        self._modules[path] = module
        if len(self._modules) > _MOST_MODULES:
            self._modules.popitem(last=False)
        return module

    def _parsed(self, text: str, path: str) -> Module | None:
        try:
            return Module(text, path, self)
        except SyntaxError:
            converted = to_python3(text)
            return Module(converted.text, path, self) if converted else None

    def member(self, path: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str:
        """What a name means that is taken from a module of the tree.

        Returns:
            A qualified name: of a library (`tensorflow.Session`), or `tree:PATH:NAME` for what the
            tree defines itself, or `tree:PATH` for a module of it.
        """
        if (path, name) in seen:
            return f"tree:{path}:{name}"
        module = self.module(path)
        if module is not None:
            found = module.exported(name, seen | {(path, name)})
            if found:
                return found
        folder = path if path.endswith("/") else path.removesuffix("__init__.py")
        if path.endswith(("/", "__init__.py")):
            inner = self._file([part for part in folder.split("/") if part] + [name])
            if inner:
                return f"tree:{inner}"
        return f"tree:{path}:{name}"
