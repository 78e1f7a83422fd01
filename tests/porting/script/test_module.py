"""What names of a script mean, and where its parts are."""

import ast
import warnings
from pathlib import Path

import pytest

from jumar.porting.script.module import Module, parsed, parsed_or_none
from jumar.porting.script.project import Project
from tests.porting.trees import write_files

NOWHERE = Project(Path("nowhere"))


def module(text: str, project: Project = NOWHERE, path: str = "script.py") -> Module:
    return Module(text, path, project)


def named(text: str, project: Project = NOWHERE, path: str = "script.py") -> str | None:
    """What the last expression of a script names."""
    found = module(text, project, path)
    last = next(node for node in reversed(found.scopes.nodes) if isinstance(node, ast.Expr))
    return found.name_of(last.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import tensorflow as tf\ntf.Session", "tensorflow.Session"),
        ("import tensorflow.compat.v1 as tf\ntf.Session", "tensorflow.Session"),
        ("import torch.nn\ntorch.nn.Module", "torch.nn.Module"),
        ("import torch.nn as nn\nnn.Module", "torch.nn.Module"),
        ("from torch import nn as n\nn.Module", "torch.nn.Module"),
        ("from tensorflow import Session\nSession", "tensorflow.Session"),
        ("import tensorflow as tf\nS = tf.Session\nS", "tensorflow.Session"),
        ("import tensorflow as tf\nT = tf\nT.Session", "tensorflow.Session"),
        ("import tensorflow as tf\na = b = tf\na.Session", None),
        ("import tensorflow as tf\na: object = tf\na.Session", None),
        ("import tensorflow as tf\na = tf\na = 3\na.Session", None),
        ("import tensorflow as tf\ntf = 3\ntf.Session", None),
        ("tf = None\nimport tensorflow as tf\ntf.Session", "tensorflow.Session"),
        ("a = None\nimport tensorflow as tf\na = tf\na.Session", None),
        ("try:\n    import a as x\nexcept E:\n    import b as x\nx.c", "a.c"),
        ("a = a\na", None),
        ("a = b\nb = a\na", None),
        ("print", "builtins.print"),
        ("nothing", None),
        ("print.x", "builtins.print.x"),
        ("f().x", None),
        ("3", None),
        ("def f(): pass\nf", "tree:script.py:f"),
        ("class C: pass\nC", "tree:script.py:C"),
        ("class C: pass\nC.method", None),
        ("def g():\n    def f(): pass\n    f", None),
        ("def f(x):\n    x", None),
        ("for x in y: pass\nx", None),
        ("from keras.layers import *\nDense", "keras.layers.Dense"),
        ("from tensorflow import *\nfrom keras.layers import *\nDense", "keras.layers.Dense"),
        ("from keras.layers import *\nprint", "builtins.print"),
        ("from numpy import *\nDense", None),
        ("from npu_bridge.npu_init import *\ntf.Session", "tensorflow.Session"),
        ("from npu_bridge.npu_init import *\nNPUEstimator", "npu_bridge.npu_init.NPUEstimator"),
        ("from npu_bridge.npu_init import *\nOther", None),
        ("def f():\n    from keras.layers import *\n    Dense", "keras.layers.Dense"),
        ("from keras.layers import *\ndef f():\n    Dense", "keras.layers.Dense"),
        ("def f():\n    from keras.layers import *\nDense", None),
    ],
)
def test_name_is_followed_through_imports_and_aliases(text: str, name: str | None) -> None:
    assert named(text) == name


@pytest.mark.parametrize(("aliases", "name"), [(12, "torch.nn"), (13, None)])
def test_chains_of_aliases_are_followed_up_to_a_length(aliases: int, name: str | None) -> None:
    lines = ["import torch as x0", *(f"x{n} = x{n - 1}" for n in range(1, aliases))]
    assert named("\n".join([*lines, f"x{aliases} = x{aliases - 1}.nn", f"x{aliases}"])) == name


@pytest.mark.parametrize(("aliases", "name"), [(12, "torch"), (13, "tree:chain.py:x13")])
def test_chains_of_another_module_are_followed_up_to_the_same_length(
    tmp_path: Path, aliases: int, name: str
) -> None:
    lines = ["import torch as x0", *(f"x{n} = x{n - 1}" for n in range(1, aliases + 1))]
    write_files(tmp_path, {"chain.py": "\n".join(lines)})
    assert Project(tmp_path).member("chain.py", f"x{aliases}") == name


def test_positions_count_characters_not_bytes() -> None:
    found = module('a = "é中"; b = f(c,\n  "中" + d)  # end\n')
    texts = [found.source(node) for node in found.scopes.nodes if hasattr(node, "lineno")]
    assert texts == [
        *('a = "é中"', "a", '"é中"', 'b = f(c,\n  "中" + d)', "b", 'f(c,\n  "中" + d)', "f", "c"),
        *('"中" + d', '"中"', "d"),
    ]


def test_enclosing_nodes_are_found() -> None:
    found = module("class A:\n    def f(self):\n        return (x + 1)\ny\n")
    x, y = (
        next(n for n in found.scopes.nodes if isinstance(n, ast.Name) and n.id == name)
        for name in "xy"
    )
    assert isinstance(found.parent(x), ast.BinOp)
    assert isinstance(found.statement(x), ast.Return)
    function, holder = found.function(x), found.class_of(x)
    assert function is not None
    assert holder is not None
    assert (function.name, holder.name) == ("f", "A")
    assert (found.function(y), found.class_of(y), found.parent(found.tree)) == (None, None, None)
    assert found.statement(found.statement(x)) is found.statement(x)


def test_classes_have_their_known_ancestors(tmp_path: Path) -> None:
    write_files(tmp_path, {"base.py": "import torch\nclass Base(torch.nn.Module): pass\n"})
    found = module(
        "from base import Base\nclass A(Base, Other): pass\nclass B(A, Base): pass\n"
        "class Loop(Loop): pass\ndef f(): pass\n",
        Project(tmp_path),
    )
    assert found.lineage("tree:script.py:B") == (
        *("tree:script.py:B", "tree:script.py:A", "tree:base.py:Base", "torch.nn.Module"),
    )
    assert found.lineage("torch.nn.Module") == ("torch.nn.Module",)
    assert found.lineage("tree:script.py:Loop") == ("tree:script.py:Loop",)
    assert found.lineage("tree:script.py:f") == ("tree:script.py:f",)
    chain = "class C0: pass\n" + "".join(f"class C{n}(C{n - 1}): pass\n" for n in range(1, 60))
    assert len(module(chain).lineage("tree:script.py:C59")) == 50
    defined, node = found.definition("tree:base.py:Base")
    assert defined is not None
    assert defined.path == "base.py"
    assert isinstance(node, ast.ClassDef)
    for unknown in ("tree:none.py:x", "torch.x", "tree:base.py", "tree:a:b:c"):
        assert found.definition(unknown) == (None, None)
    assert found.definition("tree:base.py:missing") == (defined, None)
    again = module("def f(): 1\ndef f(): 2\n")
    _, node = again.definition("tree:script.py:f")
    assert isinstance(node, ast.FunctionDef)
    assert node.lineno == 2


def test_imports_of_a_library_include_its_submodules() -> None:
    found = module("import torch.nn as nn\nfrom apex import amp\nfrom keras.layers import *\n")
    for prefix in ("torch", "torch.nn", "apex", "keras", "keras.layers"):
        assert found.imports(prefix)
    for prefix in ("tor", "torch.nn.functional", "amp", "ker"):
        assert not found.imports(prefix)
    assert not module("apex = 1\n").imports("apex")


def test_imported_modules_of_the_tree_are_listed_once(tmp_path: Path) -> None:
    names = ("a.py", "b.py", "c.py", "torch.py", "script.py")
    write_files(tmp_path, dict.fromkeys(names, ""))
    text = "import a, b, os, torch, script\nfrom a import x\nfrom c import *\nd = 1\n"
    assert module(text, Project(tmp_path)).imported_paths() == ["a.py", "b.py", "c.py"]


def test_imported_modules_are_followed_once_and_not_through_missing_ones(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "import b, script", "b.py": "import a, c", "c.py": "def ("})
    script = module("import a, b, os", Project(tmp_path))
    assert [found.path for found in script.with_imported()] == ["script.py", "a.py", "b.py"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import ops\nops.make", "tree:ops.py:make"),
        ("import ops\nops.Session", "tensorflow.Session"),
        ("import ops\nops.tf.Session", "tensorflow.Session"),
        ("import ops\nops", "tree:ops.py"),
        ("import ops\nops.make.x", None),
        ("from ops import make as m\nm", "tree:ops.py:make"),
        ("from ops import *\nmake", "tree:ops.py:make"),
        ("from ops import *\ntf.Session", "tensorflow.Session"),
        ("from ops import *\nmissing", None),
        ("from ops import missing\nmissing", "tree:ops.py:missing"),
        ("from ops import either\neither", "tree:ops.py:either"),
        ("from package import inner\ninner.f", "tree:package/inner.py:f"),
        ("from package import one\none", "tree:package/__init__.py:one"),
        ("import loop_a\nloop_a.x", "tree:loop_a.py:x"),
        ("from loop_a import *\nx", None),
        ("from stars import later\nlater", "keras.layers.Dense"),
        ("import script\nscript.Session", "script.Session"),
    ],
)
def test_names_are_followed_through_the_files_of_a_tree(
    tmp_path: Path, text: str, name: str | None
) -> None:
    write_files(
        tmp_path,
        {
            "ops.py": "import tensorflow as tf\nfrom tensorflow import Session\ndef make(): pass\n"
            "if make():\n    def either(): pass\nelse:\n    class either: pass\n",
            "stars.py": "from keras.layers import *\nlater = Dense\n",
            "package/__init__.py": "one = 1\n",
            "package/inner.py": "def f(): pass\n",
            "loop_a.py": "from loop_b import *\n",
            "loop_b.py": "from loop_a import *\n",
            "script.py": "",
        },
    )
    assert named(text, Project(tmp_path)) == name


def test_invalid_escapes_in_a_script_raise_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(parsed('x = "\\d"\n'), ast.Module)
    with pytest.raises(SyntaxError):
        parsed("def (:\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 1\nx", "1"),
        ("x: int = 1\nx", "1"),
        ("x = 1\nx = 2\nx", None),
        ("for x in y:\n    pass\nx", None),
        ("x", None),
    ],
)
def test_an_assigned_value_is_that_of_the_only_binding(text: str, value: str | None) -> None:
    found = module(text)
    (name,) = [node for node in found.scopes.nodes if isinstance(node, ast.Name)][-1:]
    assigned = found.assigned_value(name)
    assert (ast.unparse(assigned) if assigned is not None else None) == value


@pytest.mark.parametrize(
    ("text", "call"), [("f(x)", "f(x)"), ("f(a=x)", "f(a=x)"), ("x(1)", None), ("[x]", None)]
)
def test_an_expression_is_passed_to_the_call_with_that_argument(
    text: str, call: str | None
) -> None:
    found = module(text)
    name = next(
        node for node in found.scopes.nodes if isinstance(node, ast.Name) and node.id == "x"
    )
    outer = found.passed_to(name)
    assert (ast.unparse(outer) if outer is not None else None) == call


def test_a_block_is_that_of_the_branch_with_the_statement() -> None:
    found = module("if a:\n    b\nelse:\n    c\n    d\n")
    (outer,) = found.tree.body
    assert isinstance(outer, ast.If)
    assert found.block(outer) == [outer]
    assert found.block(outer.orelse[1]) == outer.orelse
    assert found.block(ast.Pass()) == []


@pytest.mark.parametrize(("text", "parses"), [("a", True), ("def (", False), ("a\0", False)])
def test_text_that_python_rejects_has_no_tree(text: str, parses: bool) -> None:
    assert (parsed_or_none(text) is not None) is parses
