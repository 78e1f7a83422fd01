"""The names that the real torch_npu offers, read from the Python sources in its wheel.

Nothing of a wheel is imported or run: that would need CANN. The table holds the oldest release
that jumar works with and the one it is tested on. To renew it:

    pip download torch_npu==2.6.0 --no-deps --dest wheels
    pip download torch_npu==2.13.0 --no-deps --dest wheels
    python -m tests.npu_standin.extract_names wheels/*.whl
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

TABLE = Path(__file__).parent / "torch_npu_names.json"
MODULES = ("torch_npu", "torch_npu.npu", "torch_npu.profiler")
"""The modules whose names jumar may use."""


class Sources:
    """The Python files of a wheel, by the module they are."""

    def __init__(self, wheel: Path) -> None:
        self.version = wheel.name.split("-")[1]
        self._trees: dict[str, ast.Module] = {}
        self._packages: set[str] = set()
        self._names: dict[str, dict[str, ast.AST]] = {}
        with ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".py") and name.startswith("torch_npu/"):
                    module = name.removesuffix(".py").replace("/", ".")
                    if module.endswith(".__init__"):
                        module = module.removesuffix(".__init__")
                        self._packages.add(module)
                    self._trees[module] = ast.parse(archive.read(name))

    def names(self, module: str) -> dict[str, ast.AST]:
        """What a module binds at its top level, and where it comes from; submodules included."""
        if module in self._names:
            # Modules import each other in circles; like Python, take what is bound so far.
            return self._names[module]
        bound = self._names[module] = {}
        for node in self._trees[module].body:
            for name, value in self._bindings(node, module):
                bound[name] = value
        for other in self._trees:
            if other.rpartition(".")[0] == module:
                bound.setdefault(other.rpartition(".")[2], self._trees[other])
        return bound

    def _bindings(self, node: ast.stmt, module: str) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and node.value is not None:
                    yield target.id, node.value
        elif isinstance(node, ast.ImportFrom):
            source = self._absolute(node, module)
            for alias in node.names:
                if alias.name == "*":
                    yield from self._starred(source)
                else:
                    there = self.names(source) if source in self._trees else {}
                    yield alias.asname or alias.name, there.get(alias.name, node)

    def _absolute(self, node: ast.ImportFrom, module: str) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        drop = node.level - (1 if module in self._packages else 0)
        base = parts[: len(parts) - drop]
        return ".".join([*base, *([node.module] if node.module else [])])

    def _starred(self, source: str) -> Iterator[tuple[str, ast.AST]]:
        there = self.names(source)
        public = self._listed(there) or [name for name in there if not name.startswith("_")]
        for name in public:
            if name in there:
                yield name, there[name]

    @staticmethod
    def _listed(names: dict[str, ast.AST]) -> list[str]:
        listed = names.get("__all__")
        return list(ast.literal_eval(listed)) if isinstance(listed, ast.List) else []

    def attributes(self, value: ast.AST) -> list[str]:
        """The attributes of a class, or of an object made from a class by calling it."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            owner = value.func.value
            if isinstance(owner, ast.Name) and f"torch_npu.npu.{owner.id}" in self._trees:
                value = self.names(f"torch_npu.npu.{owner.id}").get(value.func.attr, value)
        if not isinstance(value, ast.ClassDef):
            return []
        methods = {node.name for node in value.body if isinstance(node, ast.FunctionDef)}
        constants = {
            target.id
            for node in value.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        # torch_npu's switches take attributes by comparing `name` with strings.
        compared = {
            constant.value
            for node in ast.walk(value)
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name)
            for constant in node.comparators
            if node.left.id == "name"
            and isinstance(constant, ast.Constant)
            and isinstance(constant.value, str)
        }
        return sorted(name for name in methods | constants | compared if not name.startswith("__"))


def names_of(wheel: Path) -> tuple[str, dict[str, dict[str, list[str]]]]:
    """The version, and for each module its names with their attributes."""
    sources = Sources(wheel)
    modules = {
        module: {
            name: sources.attributes(value) for name, value in sorted(sources.names(module).items())
        }
        for module in MODULES
    }
    return sources.version, modules


if __name__ == "__main__":
    table = dict(names_of(Path(wheel)) for wheel in sys.argv[1:])
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
