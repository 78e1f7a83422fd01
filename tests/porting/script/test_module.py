"""What names mean: imports, aliases, stars, modules of the tree, classes and their ancestors."""

import ast
from pathlib import Path

import pytest

from jumar.porting.script.module import Module
from jumar.porting.script.project import Project


def named(text: str, root: Path = Path("nowhere"), path: str = "script.py") -> str | None:
    """What the last expression of a script names."""
    module = Module(text, path, Project(root))
    last = module.tree.body[-1]
    while not isinstance(last, ast.Expr):
        last = last.body[-1]  # type: ignore[attr-defined]
    return module.name_of(last.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import tensorflow as tf\ntf.Session", "tensorflow.Session"),
        ("import tensorflow\ntensorflow.Session", "tensorflow.Session"),
        ("import tensorflow.compat.v1 as tf\ntf.Session", "tensorflow.Session"),
        ("import tensorflow as tf\ntf.compat.v1.Session", "tensorflow.Session"),
        ("from tensorflow import Session as S\nS", "tensorflow.Session"),
        ("from tensorflow.python.client.session import Session\nSession", "tensorflow.Session"),
        ("from tensorflow.python.client import session\nsession.Session", "tensorflow.Session"),
        ("import tensorflow as tf\nSession = tf.Session\nSession", "tensorflow.Session"),
        (
            "import tensorflow as tf\nt = tf.train\nadam = t.AdamOptimizer\nadam",
            "tensorflow.train.AdamOptimizer",
        ),
        (
            "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n"
            "    import tensorflow as tf\ntf.Session",
            "tensorflow.Session",
        ),
        (
            "try:\n    import horovod.tensorflow as hvd\n"
            "except ImportError:\n    hvd = None\nhvd.rank",
            "horovod.tensorflow.rank",
        ),
        ("from tensorflow import *\nSession", "tensorflow.Session"),
        (
            "from npu_bridge.npu_init import *\nnpu_config_proto",
            "npu_bridge.npu_init.npu_config_proto",
        ),
        ("from npu_bridge.npu_init import *\ntf.Session", "tensorflow.Session"),
        ("def f():\n    import tensorflow as tf\n    tf.Session", "tensorflow.Session"),
        (
            "import tensorflow as tf\nclass A:\n    tf = 3\n    def f(self):\n        tf.Session",
            "tensorflow.Session",
        ),
        ("def f():\n    global tf\n    import tensorflow as tf\ntf.Session", "tensorflow.Session"),
        (
            "import tensorflow.contrib.slim as slim\nslim.learning.train",
            "tensorflow.contrib.slim.learning.train",
        ),
        ("print", "builtins.print"),
    ],
)
def test_a_name_is_followed_to_its_library(text: str, name: str) -> None:
    assert named(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\ndef f(tf):\n    tf.Session",
        "import tensorflow as tf\ntf = make()\ntf.Session",
        "import tensorflow as tf\nfor tf in things:\n    tf.Session",
        "import tensorflow as tf\ndef f():\n    tf = fake\n    tf.Session",
        "class A:\n    import tensorflow as tf\n    def f(self):\n        tf.Session",
        "tf.Session",
        "a = b\nb = a\na.Session",
        "import tensorflow as tf\ndef f():\n    tf.x()\n    tf = 1\n    tf.Session",
    ],
)
def test_a_name_that_means_something_else_is_not_taken_for_the_library(text: str) -> None:
    assert not (named(text) or "").startswith("tensorflow")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in {
        "ops.py": "import tensorflow as tf\nfrom tensorflow import Session as S\n"
        "class Mine(tf.Session):\n    pass\ndef conv(x):\n    return x\n",
        "utils.py": "from ops import *\n",
        "nets/__init__.py": "from .deep import Net, tf as flow\n",
        "nets/deep.py": "import tensorflow as tf\nclass Net(tf.keras.Model):\n    pass\n",
        "loop.py": "from pool import x\n",
        "pool.py": "from loop import x\n",
        "broken.py": "def (:\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("from ops import *\ntf.Session", "a.py", "tensorflow.Session"),
        ("from utils import *\nS", "a.py", "tensorflow.Session"),
        ("from utils import *\ntf.Session", "a.py", "tensorflow.Session"),
        ("import utils\nutils.tf.Session", "a.py", "tensorflow.Session"),
        ("from nets import flow\nflow.Session", "a.py", "tensorflow.Session"),
        ("import nets\nnets.flow.Session", "a.py", "tensorflow.Session"),
        ("import nets.deep as deep\ndeep.tf.Session", "a.py", "tensorflow.Session"),
        ("from . import deep\ndeep.tf.Session", "nets/b.py", "tensorflow.Session"),
        ("from ..ops import S\nS", "nets/b.py", "tensorflow.Session"),
        ("from ops import conv\nconv", "a.py", "tree:ops.py:conv"),
        ("from utils import Mine\nMine", "a.py", "tree:ops.py:Mine"),
        ("from loop import x\nx", "a.py", "tree:loop.py:x"),
        ("from broken import x\nx", "a.py", "tree:broken.py:x"),
    ],
)
def test_names_are_followed_through_modules_of_the_tree(
    tree: Path, text: str, path: str, name: str
) -> None:
    assert named(text, tree, path) == name


def test_a_class_knows_its_ancestors_across_modules(tree: Path) -> None:
    module = Module("from utils import Mine\nclass Own(Mine):\n    pass\n", "a.py", Project(tree))
    assert module.lineage("tree:a.py:Own") == (
        "tree:a.py:Own",
        "tree:ops.py:Mine",
        "tensorflow.Session",
    )


def test_a_class_that_inherits_from_itself_is_no_endless_loop() -> None:
    module = Module("class A(B): pass\nclass B(A): pass\n", "a.py", Project(Path("nowhere")))
    assert module.lineage("tree:a.py:A") == ("tree:a.py:A", "tree:a.py:B")


@pytest.mark.parametrize("library", ["npu_bridge", "tensorflow", "torch"])
def test_a_copy_of_a_library_in_the_tree_is_still_the_library(library: str, tmp_path: Path) -> None:
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text("def Session():\n    pass\n")
    (tmp_path / library / "npu_init.py").write_text("def Session():\n    pass\n")
    assert named(f"import {library}\n{library}.Session", tmp_path) == f"{library}.Session"
    text = f"from {library}.npu_init import Session\nSession"
    assert named(text, tmp_path) == f"{library}.npu_init.Session"


def test_names_are_followed_into_modules_of_python_2(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import tensorflow as tf\nprint 'x'\n")
    assert named("from old import tf\ntf.Session", tmp_path) == "tensorflow.Session"
