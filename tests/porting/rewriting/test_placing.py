"""Imports that a port adds."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.applying import applied
from jumar.porting.rewriting.placing import addition, import_lines
from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project


def view(text: str) -> View:
    return View(Module(text, "script.py", Project(Path("nowhere"))), PortOptions())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import os\n", []),
        ("import os.path\n", []),
        ("import os as system\n", ["import os"]),
        ("def f():\n    import os\n", ["import os"]),
        ("", ["import os"]),
    ],
)
def test_module_is_imported_unless_it_is_bound_under_its_own_name(
    text: str, lines: list[str]
) -> None:
    assert import_lines(view(text), {"os:"}) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from tensorflow.estimator import RunConfig\n", []),
        (
            "from tensorflow.estimator import RunConfig as Config\n",
            ["from tensorflow.estimator import RunConfig"],
        ),
    ],
)
def test_member_is_imported_unless_it_is_bound_under_its_own_name(
    text: str, lines: list[str]
) -> None:
    assert import_lines(view(text), {"tensorflow.estimator:RunConfig"}) == lines


def test_imports_of_several_modules_are_sorted_with_whole_modules_first() -> None:
    names = {"os:", "a.b:d", "a.b:c", "npu_config_proto", "NPUEstimator", "z:y"}
    text = "npu_config_proto = 1\nfrom npu_bridge.npu_init import NPURunConfig\n"
    assert import_lines(view(text), names) == [
        "import os",
        "from npu_bridge.npu_init import NPUEstimator, npu_config_proto as npu_config_proto_of_npu",
        *("from a.b import c, d", "from z import y"),
    ]
    known = "from npu_bridge.npu_init import NPUEstimator as E\nfrom npu_bridge.npu_init import *\n"
    assert import_lines(view(known), {"NPUEstimator", "npu_config_proto"}) == []


@pytest.mark.parametrize(("length", "broken"), [(100, False), (101, True)])
def test_long_import_is_broken_into_lines(length: int, broken: bool) -> None:
    first = "a" * (length - len("from m import , b"))
    (line,) = import_lines(view(""), {f"m:{first}", "m:b"})
    expected = f"from m import (\n    {first},\n    b,\n)" if broken else None
    assert line == (expected or f"from m import {first}, b")


NPU = ["from npu import x"]


@pytest.mark.parametrize(
    ("before", "imports", "functions", "after"),
    [
        ("", NPU, [], "from npu import x\n"),
        ("y = 1\n", NPU, [], "from npu import x\ny = 1\n"),
        ("import os\ny = 1\n", NPU, [], "import os\nfrom npu import x\ny = 1\n"),
        ("import os", NPU, [], "import os\nfrom npu import x"),
        ("import os; y = 1\nz\n", NPU, [], "import os; y = 1\nfrom npu import x\nz\n"),
        ("import os\r\ny\r\n", ["a\nb"], [], "import os\r\na\r\nb\r\ny\r\n"),
        ("import os\r\n", NPU, ["def f():\n  1"],
         "import os\r\nfrom npu import x\r\n\r\n\r\ndef f():\r\n  1\r\n"),
        ("#!python\n# coding: x\n\ny\n", NPU, [],
         "#!python\n# coding: x\nfrom npu import x\n\ny\n"),
        ("  # a\n\f# b\ny\n", NPU, [], "  # a\n\f# b\nfrom npu import x\ny\n"),
        ('"""Doc."""\ny\n', NPU, [], '"""Doc."""\nfrom npu import x\ny\n'),
        ('"""Doc."""; z\ny\n', NPU, [], '"""Doc."""; z\nfrom npu import x\ny\n'),
        ("# only", NPU, [], "# only\nfrom npu import x"),
        ("y = 1\n", NPU, ["def f(): 1"], "from npu import x\n\n\ndef f(): 1\n\ny = 1\n"),
        ("", NPU, ["def f(): 1"], "from npu import x\n\n\ndef f(): 1\n"),
        ("# a\n  \n", [], ["def f(): 1"], "# a\n\n\ndef f(): 1\n  \n"),
        # Other statements may be between imports, but none that may need the NPU's.
        ("import a\ny = 1\nimport b\nz\n", NPU, [],
         "import a\ny = 1\nimport b\nfrom npu import x\nz\n"),
        *(
            (f"import a\n{between}\nimport b\n", NPU, [],
             f"import a\nfrom npu import x\n{between}\nimport b\n")
            for between in (
                "def f(): 1", "async def f(): 1", "class A: 1", "with a: 1", "for a in b: 1",
                "while a: 1", "if __name__ == '__main__': 1",
            )
        ),
        ("import tensorflow as tf\ntf.Session()\nimport b\n", NPU, [],
         "import tensorflow as tf\nfrom npu import x\ntf.Session()\nimport b\n"),
        ("import tensorflow as tf\ntf.add()\nimport b\n", NPU, [],
         "import tensorflow as tf\ntf.add()\nimport b\nfrom npu import x\n"),
        ("if a: 1\nimport b\n", NPU, [], "if a: 1\nimport b\nfrom npu import x\n"),
        ("try:\n    import a\nexcept E:\n    1\ny\n", NPU, [],
         "try:\n    import a\nexcept E:\n    1\nfrom npu import x\ny\n"),
        ("import c\ntry:\n    import a\n    b()\nexcept E:\n    1\n", NPU, [],
         "import c\nfrom npu import x\ntry:\n    import a\n    b()\nexcept E:\n    1\n"),
        # torch_npu is directly after the first imports of PyTorch.
        ("import os\nimport torch\nfrom torch import nn\nimport mine\nimport torch.x\n",
         ["import torch_npu"], [],
         "import os\nimport torch\nfrom torch import nn\nimport torch_npu\n"
         "import mine\nimport torch.x\n"),
        ("import torchvision\nfrom .torch import a\nimport b\n", ["import torch_npu"], [],
         "import torchvision\nfrom .torch import a\nimport b\nimport torch_npu\n"),
        ("import torch\nimport mine\n", ["import torch_npu"], ["def f(): 1"],
         "import torch\nimport mine\nimport torch_npu\n\n\ndef f(): 1\n"),
        ("import torch\nimport mine\n", ["import torch_npu", "import os"], [],
         "import torch\nimport mine\nimport torch_npu\nimport os\n"),
    ],
)  # fmt: skip
def test_imports_and_functions_are_placed_below_existing_imports(
    before: str, imports: list[str], functions: list[str], after: str
) -> None:
    module = Module(before, "script.py", Project(Path("nowhere")))
    change = addition(module, imports, functions)
    assert (change.start, change.side) == (change.end, "close")
    assert applied(before, [change]) == after
