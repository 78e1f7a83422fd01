"""What expressions of a script hold."""

import ast
from pathlib import Path

import pytest

from jumar.porting.script.kinds import Kinds
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project
from tests.porting.trees import write_files

NOWHERE = Project(Path("nowhere"))
HEAD = "import tensorflow as tf\nimport keras\nimport horovod.tensorflow as hvd\n"


def asked(text: str, project: Project = NOWHERE) -> str | None:
    """The kind of the last expression of a script."""
    module = Module(HEAD + text, "script.py", project)
    last = module.tree.body[-1]
    assert isinstance(last, ast.Expr)
    return Kinds(module).of(last.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tf.Session()", "Session"),
        ("tf.keras.backend.get_session()", "Session"),
        ("tf.train.Supervisor()", "Supervisor"),
        ("tf.data.TFRecordDataset(x)", "Dataset"),
        ("tf.data.Dataset.from_tensors(x)", "Dataset"),
        ("tf.data.Dataset.other(x)", None),
        ("tf.data.experimental.make_csv_dataset(x)", "Dataset"),
        ("tf.data.experimental.make_batched_features_dataset(x)", "Dataset"),
        ("tf.data.experimental.map_and_batch(x)", None),
        ("tf.data.batch(x)", None),
        ("tf.keras.Sequential()", "KerasModel"),
        ("tf.keras.models.load_model(x)", "KerasModel"),
        ("keras.optimizers.Adam()", "KerasOptimizer"),
        ("keras.layers.Dense(1)", None),
        ("tf.train.AdamOptimizer()", "Optimizer"),
        ("tf.contrib.opt.LazyAdamOptimizer()", "Optimizer"),
        ("tf.train.AdamOptimizers()", None),
        ("tf.other.AdamOptimizer()", None),
        ("tf.estimator.DNNClassifier()", "Estimator"),
        ("tf.estimator.LinearRegressor()", "Estimator"),
        ("tf.estimator.export()", None),
        ("tf.keras.applications.ResNet50()", "KerasModel"),
        ("keras.applications.resnet.preprocess_input(x)", None),
        ("tf.Session", None),
        ("tf.unknown()", None),
        ("tf.Unknown()", None),
        ("tf.Model()", None),
        ("tf.other.SGD()", None),
        ("tf.other.DNNClassifier()", None),
        ("hvd.DistributedOptimizer(x)", "Optimizer"),
        ("3", None),
        ("x = tf.Session()\nx", "Session"),
        ("x = y = tf.Session()\ny", "Session"),
        ("x = None\nx = tf.Session()\nx", "Session"),
        ("x = tf.Session()\nx = tf.ConfigProto()\nx", None),
        ("x = tf.Session()\nx = 3\nx", None),
        ("x = tf.Session()\nx = x\nx", "Session"),
        ("x = x\nx", None),
        ("for x in tf.data.Dataset.range(3): pass\nx", None),
        ("with tf.Session() as x: pass\nx", "Session"),
        ("with tf.Session().as_default() as x: pass\nx", "Session"),
        ("tf.train.Supervisor().managed_session()", "Session"),
        ("tf.train.Supervisor().other()", None),
        ("tf.estimator.RunConfig().replace()", "RunConfig"),
        ("tf.Session() if a else tf.Session()", "Session"),
        ("tf.Session() if a else tf.ConfigProto()", None),
        ("tf.Session() if a else 3", None),
        ("a or tf.Session()", "Session"),
        ("tf.Session() or a", None),
        ("tf.data.Dataset.range(3).map(f).batch(8)", "Dataset"),
        ("tf.data.Dataset.range(3).make_one_shot_iterator()", None),
        ("x = tf.data.Dataset.range(3)\nx = x.map(f)\nx", "Dataset"),
        ("def f():\n    return tf.Session()\nf()", "Session"),
        ("def f():\n    if a: return tf.Session()\n    return None\nf()", None),
        ("def f():\n    if a: return tf.Session()\n    return tf.ConfigProto()\nf()", None),
        ("def f():\n    if a: return tf.Session()\n    return f()\nf()", "Session"),
        ("def f():\n    return f()\nf()", None),
        ("def f():\n    def g():\n        return 3\n    return tf.Session()\nf()", "Session"),
        ("def f():\n    return\nf()", None),
        ("class S(tf.Session): pass\nS()", "Session"),
        ("class S(tf.Session): pass\nclass T(S): pass\nT()", "Session"),
        ("class S: pass\nS()", None),
    ],
)
def test_expression_has_the_kind_of_its_constructor(text: str, kind: str | None) -> None:
    assert asked(text) == kind


CLASS = """
class Trainer(Parent):
    def __init__(self):
        self.sess = None
        self.sess = tf.Session()
        self.two = tf.Session()
        self.two = tf.ConfigProto()
        self.a = self.b = tf.ConfigProto()

    def make(self):
        return tf.train.Saver()

    def again(self):
        return self.make()

    def config(self):
        return self.sess

    def nothing(self): pass
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("t = Trainer()\nt.sess", "Session"),
        ("t = Trainer()\nt.two", None),
        ("t = Trainer()\nt.b", "ConfigProto"),
        ("t = Trainer()\nt.make()", "Saver"),
        ("t = Trainer()\nt.again()", "Saver"),
        ("t = Trainer()\nt.config()", "Session"),
        ("t = Trainer()\nt.nothing()", None),
        ("t = Trainer()\nt.missing()", None),
        ("Trainer().make()", "Saver"),
        ("Trainer().sess", "Session"),
        ("t = Trainer()\nt = Trainer()\nt.sess", None),
        ("def f(t): pass\nt = Trainer()\nwith t: pass\nt.sess", "Session"),
        ("class More(Trainer): pass\nMore().sess", "Session"),
        ("class More(Trainer):\n    def make(self): return 3\nMore().make()", None),
        ("for t in [Trainer()]: pass\nt.sess", None),
        ("t = Trainer\nt.sess", None),
    ],
)
def test_attributes_and_methods_have_the_kind_all_assignments_agree_on(
    text: str, kind: str | None
) -> None:
    assert asked(f"class Parent: pass\n{CLASS}\n{text}") == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def f(x):\n    {}\nf(tf.Session())\n", "Session"),
        ("def f(x):\n    {}\nf(tf.Session())\nf(x=tf.Session())\n", "Session"),
        ("def f(x):\n    {}\nf(tf.Session())\nf(3)\n", None),
        ("def f(a, x):\n    {}\nf(tf.ConfigProto(), tf.Session())\n", "Session"),
        ("def f(x):\n    {}\nf(tf.Session())\nh(f)\n", None),
        ("def f(x):\n    {}\nf(tf.Session())\nf()\n", "Session"),
        ("def f(x):\n    {}\n", None),
        ("def f(x):\n    {}\nf(tf.Session())\ng = h(3, f(tf.Session()))\n", "Session"),
        ("def f(x: tf.Session):\n    {}\n", "Session"),
        ("def f(x: int):\n    {}\nf(tf.Session())\n", "Session"),
        ("def f(x: int):\n    {}\nf(3)\n", None),
        ("def f(*x):\n    {}\nf(tf.Session())\n", None),
        ("async def f(x):\n    {}\nf(tf.Session())\n", None),
        ("class A:\n    def f(self, x):\n        {}\nA().f(tf.Session())\n", None),
    ],
)
def test_argument_has_the_kind_all_calls_in_the_module_pass(text: str, kind: str | None) -> None:
    module = Module(HEAD + text.format("x"), "script.py", NOWHERE)
    uses = [
        node
        for node in module.scopes.nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)
    ]
    assert [Kinds(module).of(use.value) for use in uses] == [kind]


WRAPPER = "from npu_bridge.npu_init import *\nw = npu_distributed_optimizer_wrapper\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("w(tf.train.AdamOptimizer())", "Optimizer"),
        ("w(optimizer=keras.optimizers.Adam())", "KerasOptimizer"),
        ("w('adam')", "KerasOptimizer"),
        ("w(3)", "Optimizer"),
        ("w(x)", "Optimizer"),
        ("w(**x)", "Optimizer"),
        ("w()", "Optimizer"),
        ("o = w(x)\nm.compile(o)\no", None),
        ("o = w(x)\nm.compile(optimizer=o)\no", None),
        ("o = w(x)\nm.fit(o)\no", "Optimizer"),
        ("o = w(x)\ncompile(o)\no", "Optimizer"),
    ],
)
def test_wrapped_optimizer_has_the_kind_of_the_inner_one(text: str, kind: str | None) -> None:
    assert asked(WRAPPER + text) == kind


def test_kinds_are_followed_into_the_other_files_of_a_tree(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "ops.py": "import tensorflow as tf\n"
            "def make():\n    return tf.Session()\n"
            "class Base:\n"
            "    def __init__(self): self.saver = tf.train.Saver()\n"
            "    def config(self): return tf.ConfigProto()\n"
            "class Own(tf.Session):\n    pass\n"
            "class Built(tf.Session):\n    def __init__(self): pass\n",
        },
    )
    project = Project(tmp_path)
    head = "from ops import make, Base, Own, Built\nclass Mine(Base):\n"
    head += "    def use(self): return self.config()\n"
    for text, kind in (
        ("make()", "Session"),
        ("Base().config()", "ConfigProto"),
        ("Mine().config()", "ConfigProto"),
        ("Mine().saver", "Saver"),
        ("Mine().use()", "ConfigProto"),
        ("Own()", "Session"),
    ):
        assert asked(f"{head}{text}", project) == kind
    text = f"{HEAD}{head}Own()\nBuilt()\nmake()\ntf.Session()\nx()\nMine().config()\nMine().use()\n"
    text += "Mine().missing()\nfree()\n"
    module = Module(text, "script.py", project)
    kinds = Kinds(module)
    calls = [
        node.value
        for node in module.tree.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    assert [kinds.called(call) for call in calls[:5]] == [
        *("tensorflow.Session", "tree:ops.py:Built", "tree:ops.py:make", "tensorflow.Session"),
        None,
    ]
    assert [kinds.defines(call) for call in calls[5:]] == [True, True, False, False]


def test_script_class_has_the_call_signature_of_its_library_base() -> None:
    text = (
        "class A(tf.Session): pass\nclass B(A):\n    def __init__(self): pass\n"
        "class C(B): pass\nclass D: pass\nA()\nB()\nC()\nD()\n"
    )
    module = Module(HEAD + text, "script.py", NOWHERE)
    kinds = Kinds(module)
    calls = [node for node in module.scopes.nodes if isinstance(node, ast.Call)]
    assert [kinds.called(call) for call in calls] == [
        *("tensorflow.Session", "tree:script.py:B", "tree:script.py:C", "tree:script.py:D"),
    ]


@pytest.mark.parametrize(("steps", "kind"), [(19, "Session"), (45, None)])
def test_very_long_chains_are_not_followed(steps: int, kind: str | None) -> None:
    lines = ["x0 = tf.Session()"] + [f"x{n} = a or x{n - 1}" for n in range(1, steps)]
    assert asked("\n".join([*lines, f"x{steps - 1}"])) == kind


@pytest.mark.parametrize(("steps", "kind"), [(40, "Session"), (41, None)])
def test_value_is_followed_through_forty_names(steps: int, kind: str | None) -> None:
    lines = ["x1 = tf.Session()"] + [f"x{n} = x{n - 1}" for n in range(2, steps + 1)]
    assert asked("\n".join([*lines, f"x{steps}"])) == kind
