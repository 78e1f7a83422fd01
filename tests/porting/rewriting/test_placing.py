"""Imports that a port adds."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.placing import import_lines
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
def test_a_module_is_imported_unless_it_is_bound_under_its_own_name(
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
def test_a_member_is_imported_unless_it_is_bound_under_its_own_name(
    text: str, lines: list[str]
) -> None:
    assert import_lines(view(text), {"tensorflow.estimator:RunConfig"}) == lines
