"""The stand-in and the recorded names against the source of the real package.

JUMAR_TF_ADAPTER names a checkout of Ascend/tensorflow, branch master; without it the tests skip.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.porting.npu.names import NPU_NAMES
from jumar.porting.standin import standin_data, standin_folder

VARIABLE = "JUMAR_TF_ADAPTER"

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")


@pytest.fixture(scope="module")
def source() -> Path:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"needs a checkout of Ascend/tensorflow, whose path is in {VARIABLE}")
    folder = Path(os.environ[VARIABLE]) / "tf_adapter" / "python"
    assert folder.is_dir(), f"{VARIABLE} has no tf_adapter/python"
    return folder


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((folder / "npu_bridge").rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def public_names(tree: ast.Module) -> set[str]:
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {
        name for name in names if not name.startswith(("_", "gen_")) and not name.endswith("_grad")
    } - {"DEFAULT_GRAPH_SEED"}


def signatures(name: str, tree: ast.Module) -> dict[str, str]:
    """Arguments with defaults, of functions and of how classes are made, by full name."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[f"{name}.{node.name}"] = arguments(node.args, constants)
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "__new__"):
                    del method.args.args[0]
                    found[f"{name}.{node.name}"] = arguments(method.args, constants)
    return found


def arguments(given: ast.arguments, constants: dict[str, ast.Constant]) -> str:
    """Arguments as text; a default that names a constant of the module is its value."""
    given.defaults = [
        constants.get(default.id, default) if isinstance(default, ast.Name) else default
        for default in given.defaults
    ]
    return ast.unparse(given)


def recorded_signatures() -> dict[str, str]:
    """The stand-in's functions from `signatures.json`."""
    return {
        f"{module}.{name}": ", ".join(
            parameter if not default else f"{parameter}={default_text(default[0])}"
            for parameter, *default in parameters
        )
        for module, names in standin_data("signatures").items()
        for name, parameters in names.items()
        if parameters is not None
    }


def default_text(default: object) -> str:
    return default["code"] if isinstance(default, dict) else repr(default)


def test_recorded_names_match_the_source(source: Path) -> None:
    seen = {"hccl.manage.api", "hccl.split.api", "npu_bridge", "npu_bridge.embedding"}
    for module, tree in modules(source):
        names = public_names(tree)
        if module in NPU_NAMES and module not in seen:
            assert names <= NPU_NAMES[module], module
            imported = NPU_NAMES[module] - names
            leaks = ("npu_bridge.npu_init", "npu_bridge.estimator.npu.util")
            assert not imported or module in leaks or module.endswith("helper"), module
            seen.add(module)
        elif module not in NPU_NAMES:
            assert not names or "_api" in module or "mnist" in module, module
    assert seen == set(NPU_NAMES)


def test_stand_in_definitions_have_the_sources_arguments(source: Path) -> None:
    real = {
        name: text
        for module, tree in modules(source)
        for name, text in signatures(module, tree).items()
    }
    ours = {
        name: text
        for module, tree in modules(standin_folder())
        for name, text in signatures(module, tree).items()
    } | recorded_signatures()
    common = [
        name
        for name in sorted(set(real) & set(ours))
        if not name.rpartition(".")[2].startswith("_")
    ]
    assert len(common) > 130
    different = {name: (ours[name], real[name]) for name in common if ours[name] != real[name]}
    assert different == {}
