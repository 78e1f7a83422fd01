"""A port says which scripts use the framework that it is not for."""

from pathlib import Path
from typing import Literal

import pytest

from jumar.porting.edits import TreeReport
from jumar.porting.options import PortOptions
from jumar.porting.tree.porting import port_tree

Source = Literal["tensorflow", "torch"]
TORCH = "import os\nfrom torch import nn\n\nmodel = nn.Linear(3, 3).cuda()\n"
TENSORFLOW = "import tensorflow as tf\n\nwith tf.Session() as session:\n    session.run(x)\n"
QUOTED = '"""An example.\n\nimport torch\nimport tensorflow\n"""\n'
NAMES = {"torch": TORCH, "tensorflow": TENSORFLOW}


def port(folder: Path, source: Source, *texts: str, jobs: int | None = None) -> TreeReport:
    for number, text in enumerate(texts):
        (folder / f"script{number}.py").write_text(text)
    return port_tree(folder, PortOptions(source=source), jobs=jobs)


def told(report: TreeReport) -> list[tuple[str, int, str, str]]:
    return [
        (file.path, found.place.line, found.severity, found.reason.en)
        for file in report.files
        for found in file.findings
        if found.rule == "other-framework"
    ]


@pytest.mark.parametrize(("source", "other"), [("tensorflow", "torch"), ("torch", "tensorflow")])
@pytest.mark.parametrize("jobs", [None, 2])
def test_tree_of_the_other_framework_is_reported_once(
    tmp_path: Path, source: Source, other: str, jobs: int | None
) -> None:
    report = port(tmp_path, source, QUOTED, NAMES[other], NAMES[other], jobs=jobs)
    line = 2 if other == "torch" else 1
    reason = f"2 scripts import {other} and none imports {source}, which this port is for"
    assert told(report) == [("script1.py", line, "blocking", reason)]
    (finding,) = [found for file in report.files for found in file.findings]
    assert finding.todo.en == f"port again with --from {other}"
    assert f"--from {other}" in finding.todo.zh
    assert "2 个脚本" in finding.reason.zh


@pytest.mark.parametrize(("source", "other"), [("tensorflow", "torch"), ("torch", "tensorflow")])
def test_scripts_of_the_other_framework_in_a_mixed_tree_are_counted(
    tmp_path: Path, source: Source, other: str
) -> None:
    both = "import torch\nimport tensorflow as tf\n"
    report = port(tmp_path, source, NAMES[source], NAMES[other], both)
    ((path, _, severity, reason),) = told(report)
    assert (path, severity) == ("script1.py", "look")
    assert reason.startswith(f"1 script imports {other} and not {source}")


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("tensorflow", [TENSORFLOW, QUOTED]),
        ("torch", [TORCH, QUOTED]),
        ("tensorflow", ["import keras\n", "import numpy\n"]),
        ("tensorflow", [TENSORFLOW, "import torch\nimport torch_npu\n"]),
        ("torch", [TORCH, "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n"]),
        ("tensorflow", ["import numpy\n"]),
    ],
)
def test_nothing_is_said_where_nothing_is_left_to_port(
    tmp_path: Path, source: Source, texts: list[str]
) -> None:
    assert not told(port(tmp_path, source, *texts))


def test_a_module_of_the_tree_with_the_name_of_a_framework_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("nn = None\n")
    assert not told(port(tmp_path, "tensorflow", TORCH))


def test_folders_named_after_the_frameworks_are_not_modules(tmp_path: Path) -> None:
    for name, text in NAMES.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    ((path, _, _, _),) = told(port_tree(tmp_path, PortOptions()))
    assert path == "torch/train.py"


def test_finding_is_at_the_first_path_even_if_its_port_ends_last(tmp_path: Path) -> None:
    # The largest script is started first, so that its report comes before the others'.
    texts = [TORCH, *["import torch\n" + "x = 1\n" * 20_000] * 3]
    ((path, _, _, _),) = told(port(tmp_path, "tensorflow", *texts, jobs=2))
    assert path == "script0.py"
