"""A parsed script: what its names refer to, and where its parts are."""

import ast
import builtins
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

from jumar.porting.npu.exports import NPU_INIT_NAMES
from jumar.porting.script.expressions import is_none
from jumar.porting.script.names import canonical
from jumar.porting.script.scopes import Binding, Scope, Scopes
from jumar.porting.script.source import Lines

_LIBRARIES = ("npu_bridge", "tensorflow", "keras", "horovod", "torch", "torch_npu")
"""Absolute imports of these never refer to modules of the tree: if a tree contained a copy of
npu_bridge, the rules would not recognise the code that they add themselves."""
_MAX_MODULES = 30
"""Maximum number of modules that are followed from one through its imports."""
_MAX_ALIASES = 12
"""Maximum length of a chain of aliases: longer ones are loops."""


class Surroundings(Protocol):
    """What a script needs from the tree around it; `Project` implements it."""

    def find(self, dotted: str, importer: str) -> str | None:
        """The path within the tree of an imported module."""
        ...

    def module(self, path: str) -> "Module | None":
        """The parsed module at a path within the tree."""
        ...

    def scripts_in(self, folder: str) -> list[str]:
        """The paths of the scripts in a folder of the tree."""
        ...

    def member(self, path: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str:
        """The qualified name of a member of one of the tree's modules."""
        ...


def parsed_or_none(text: str) -> ast.Module | None:
    """The syntax tree of a script; None if Python 3 cannot parse it."""
    try:
        return parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parsed(text: str) -> ast.Module:
    """The syntax tree of a script.

    Raises:
        SyntaxError: Python 3 cannot parse it.
    """
    with warnings.catch_warnings():
        # Invalid escapes in the user's strings are not ours to report.
        warnings.simplefilter("ignore")
        return ast.parse(text)


class Module:
    """A script as the rules see it.

    Args:
        text: The script without its byte order mark.
        path: Its path within the tree, with forward slashes.
        project: The tree, for imports of its own modules.
        tree: The syntax tree of the text, if it has already been parsed.

    Raises:
        SyntaxError: Python 3 cannot parse it.
    """

    def __init__(
        self, text: str, path: str, project: Surroundings, tree: ast.Module | None = None
    ) -> None:
        self.text = text
        self.path = path
        self.project = project
        self.tree = parsed(text) if tree is None else tree
        self.lines = Lines(text)
        self.scopes = Scopes(self.tree)
        self._names: dict[ast.expr, str | None] = {}
        self._mentioned: dict[str, bool] = {}

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls in the script."""
        return [node for node in self.scopes.nodes if isinstance(node, ast.Call)]

    def mentions(self, word: str) -> bool:
        """Whether a word is in the text; cached, since rules ask again at every call."""
        if word not in self._mentioned:
            self._mentioned[word] = word in self.text
        return self._mentioned[word]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The start and end offset of a statement or expression."""
        line, column = getattr(node, "lineno"), getattr(node, "col_offset")  # noqa: B009
        end, end_column = getattr(node, "end_lineno"), getattr(node, "end_col_offset")  # noqa: B009
        return self.lines.offset(line, column), self.lines.offset(end, end_column)

    def source(self, node: ast.AST) -> str:
        """The text of a statement or expression, without parentheses around it."""
        start, end = self.span(node)
        return self.text[start:end]

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.scopes.parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that contains an expression."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parent(current)
        assert isinstance(current, ast.stmt)
        return current

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the innermost block that contains a statement."""
        parent = self.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return []

    def passed_to(self, node: ast.AST) -> ast.Call | None:
        """The call to which an expression is passed, by position or by keyword."""
        outer = self.parent(node)
        if isinstance(outer, ast.keyword):
            outer = self.parent(outer)
        return outer if isinstance(outer, ast.Call) and outer.func is not node else None

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function that contains a node."""
        for enclosing in self.scopes.ancestors(node):
            if isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef):
                return enclosing
        return None

    def bindings(self, name: ast.Name) -> list[Binding]:
        """The bindings that a name refers to at its position."""
        return self.scopes.lookup(name)[1]

    def assigned_value(self, name: ast.Name) -> ast.expr | None:
        """The value of a variable that is bound only once, by an assignment."""
        bindings = self.bindings(name)
        is_assigned_once = len(bindings) == 1 and bindings[0].kind == "assignment"
        return bindings[0].value if is_assigned_once else None

    def uses(self, name: ast.Name) -> list[ast.Name]:
        """All places where the variable of this name is read."""
        scope, _ = self.scopes.lookup(name)
        return scope.references.get(name.id, []) if scope is not None else []

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method contains a node."""
        for enclosing in self.scopes.ancestors(node):
            if isinstance(enclosing, ast.ClassDef):
                return enclosing
        return None

    def name_of(self, node: ast.expr) -> str | None:
        """The qualified name of an expression: `tensorflow.Session`, `tree:ops.py:conv`, or None.

        Names are followed through imports, aliases (`Session = tf.Session`) and modules of the
        tree. Of several imports of one name (`try` ... `except ImportError`), the first counts.
        """
        if node not in self._names:
            self._names[node] = None
            self._names[node] = self._name_of(node, 0)
        return self._names[node]

    def exported(self, name: str, seen: frozenset[tuple[str, str]]) -> str | None:
        """The qualified name of this module's member; None if it has no such member."""
        bindings = self.scopes.module.bindings.get(name)
        if bindings:
            return self._bound(name, self.scopes.module, bindings, 0, seen)
        return self._from_stars(name, self.scopes.module, seen)

    def lineage(self, name: str) -> tuple[str, ...]:
        """A class and its known ancestors, by qualified name; only the name if it is no class."""
        ancestors: list[str] = []
        waiting = [name]
        while waiting and len(ancestors) < 50:
            current = waiting.pop(0)
            if current in ancestors:
                continue
            ancestors.append(current)
            module, node = self.definition(current)
            if module is not None and isinstance(node, ast.ClassDef):
                waiting += [base for base in map(module.name_of, node.bases) if base]
        return tuple(ancestors)

    def definition(self, name: str) -> "tuple[Module | None, ast.AST | None]":
        """The module and node that define a `tree:PATH:NAME`."""
        if not name.startswith("tree:") or name.count(":") != 2:
            return None, None
        _, path, member = name.split(":")
        module = self if path == self.path else self.project.module(path)
        if module is None:
            return None, None
        bindings = module.scopes.module.bindings.get(member, [])
        return module, bindings[-1].node if bindings else None

    def imports(self, prefix: str) -> bool:
        """Whether the top level of the module imports anything from a library."""
        return any(
            binding.kind == "import" and (binding.module + ".").startswith(prefix + ".")
            for bindings in self.scopes.module.bindings.values()
            for binding in bindings
        ) or any((star + ".").startswith(prefix + ".") for star in self.scopes.module.stars)

    def imported_paths(self) -> list[str]:
        """The paths of the tree's modules that this one imports at its top level."""
        scope = self.scopes.module
        names = [
            binding.module
            for bindings in scope.bindings.values()
            for binding in bindings
            if binding.kind == "import"
        ]
        paths = [self._in_tree(name) for name in [*names, *scope.stars]]
        return list(dict.fromkeys(path for path in paths if path and path != self.path))

    def with_imported(self, visited: set[str] | None = None) -> "Iterator[Module]":
        """The module itself, and those of the tree that it imports, directly or through others."""
        visited = set() if visited is None else visited
        visited.add(self.path)
        yield self
        for path in self.imported_paths():
            if path not in visited and len(visited) < _MAX_MODULES:
                module = self.project.module(path)
                yield from module.with_imported(visited) if module is not None else ()

    def _name_of(self, node: ast.expr, depth: int) -> str | None:
        if depth > _MAX_ALIASES:
            return None
        if isinstance(node, ast.Attribute):
            base = self.name_of(node.value) if depth == 0 else self._name_of(node.value, depth)
            return self._attribute(base, node.attr) if base else None
        if not isinstance(node, ast.Name):
            return None
        scope, bindings = self.scopes.lookup(node)
        if scope is not None:
            return self._bound(node.id, scope, bindings, depth)
        full_name = self._from_stars(node.id, self.scopes.scope_of(node), frozenset())
        if full_name:
            return full_name
        return f"builtins.{node.id}" if hasattr(builtins, node.id) else None

    def _attribute(self, base: str, attribute: str) -> str | None:
        if base.startswith("tree:"):
            parts = base.split(":")
            return self.project.member(parts[1], attribute) if len(parts) == 2 else None
        return canonical(f"{base}.{attribute}")

    def _bound(
        self,
        name: str,
        scope: Scope,
        bindings: list[Binding],
        depth: int,
        seen: frozenset[tuple[str, str]] = frozenset(),
    ) -> str | None:
        imports = [binding for binding in bindings if binding.kind == "import"]
        other_bindings = [
            binding
            for binding in bindings
            if binding.kind != "import" and not is_none(binding.value)
        ]
        if imports and not other_bindings:
            return self._imported(imports[0], seen)
        if imports or len(bindings) != len(other_bindings):
            return None
        kinds = {binding.kind for binding in other_bindings}
        if kinds <= {"class", "function"}:
            # Functions and classes within functions have no name that another module could use.
            return f"tree:{self.path}:{name}" if scope is self.scopes.module else None
        if kinds == {"assignment"} and len(other_bindings) == 1:
            statement, value = other_bindings[0].node, other_bindings[0].value
            plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
            if plain and isinstance(value, ast.Name | ast.Attribute):
                return self._name_of(value, depth + 1)
        return None

    def _imported(self, binding: Binding, seen: frozenset[tuple[str, str]]) -> str:
        path = self._in_tree(binding.module)
        if path is not None and path != self.path:
            if not binding.member:
                return f"tree:{path}"
            return self.project.member(path, binding.member, seen)
        name = f"{binding.module}.{binding.member}" if binding.member else binding.module
        return canonical(name)

    def _in_tree(self, dotted: str) -> str | None:
        if dotted.partition(".")[0] in _LIBRARIES:
            return None
        return self.project.find(dotted, self.path)

    def _from_stars(self, name: str, scope: Scope, seen: frozenset[tuple[str, str]]) -> str | None:
        current: Scope | None = scope
        while current is not None:
            for star in reversed(current.stars):
                full_name = self._from_star(name, star, seen)
                if full_name:
                    return full_name
            current = current.parent
        return None

    def _from_star(self, name: str, star: str, seen: frozenset[tuple[str, str]]) -> str | None:
        path = self._in_tree(star)
        if path is not None:
            key = (path, name)
            module = self.project.module(path) if key not in seen else None
            return module.exported(name, seen | {key}) if module else None
        if star == "npu_bridge.npu_init":
            if name == "tf":
                return "tensorflow"
            return f"{star}.{name}" if name in NPU_INIT_NAMES else None
        # The exports of other libraries are unknown. Assume that the name belongs to one of these,
        # which old scripts import with a star (`from keras.layers import *`).
        root = star.partition(".")[0]
        if root in ("tensorflow", "keras", "horovod") and not hasattr(builtins, name):
            return canonical(f"{star}.{name}")
        return None
