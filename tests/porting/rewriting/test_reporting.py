"""The checker of rules that only report."""

import ast
from pathlib import Path

import pytest

from jumar.porting.edits import Text
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.changes import Change, Leave, Notice
from jumar.porting.rewriting.reporting import Case, checker
from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project

FIRST = Text(en="first", zh="一")
ADVICE = Text(en="do", zh="做")


def changes(text: str, *cases: Case, kind: type[ast.AST] = ast.Call) -> list[Change]:
    module = Module(text, "script.py", Project(Path("nowhere")))
    view = View(module, PortOptions())
    check = checker(cases)
    nodes = [node for node in module.scopes.nodes if isinstance(node, kind)]
    return [change for node in nodes for change in check(node, view)]


def reasons(text: str, *cases: Case, kind: type[ast.AST] = ast.Call) -> list[str]:
    return [_reason(change).en for change in changes(text, *cases, kind=kind)]


def _reason(change: Change) -> Text:
    return change.remark.reason if isinstance(change, Notice) else change.reason


def test_only_the_first_matching_case_is_reported() -> None:
    cases = (
        Case(calls=("tensorflow.cond",), when=(lambda *_: False,), en="never", zh=""),
        Case(calls=("tensorflow.cond",), when=(lambda *_: True,), en="first", zh="一"),
        Case(calls=("tensorflow.cond", "tensorflow.case"), en="second", zh="二"),
    )
    text = "import tensorflow as tf\n\ntf.cond(a)\ntf.case(b)\ntf.add(c)\n"
    assert reasons(text, *cases) == ["first", "second"]


def test_every_condition_of_a_case_has_to_hold() -> None:
    case = Case(
        calls=("tensorflow.cond",), when=(lambda *_: True, lambda *_: False), en="first", zh="一"
    )
    assert reasons("import tensorflow as tf\n\ntf.cond(a)\n", case) == []


def test_star_matches_all_names_below_but_not_the_name_itself() -> None:
    case = Case(calls=("tensorflow.contrib.nccl.*",), en="first", zh="一")
    text = "import tensorflow as tf\n\ntf.contrib.nccl.all_sum(a)\ntf.contrib.nccl(b)\n"
    assert len(changes(text, case)) == 1


def test_cases_without_work_are_kept_and_others_reported() -> None:
    text = "import tensorflow as tf\n\ntf.cond(a)\n"
    case = Case(calls=("tensorflow.cond",), en="first", zh="一")
    assert isinstance(changes(text, case)[0], Leave)
    (found,) = changes(
        text,
        Case(
            calls=("tensorflow.cond",),
            en="first",
            zh="一",
            todo_en="do",
            todo_zh="做",
            severity="blocking",
            confidence="unsure",
        ),
    )
    assert isinstance(found, Notice)
    notice = found.remark
    assert (notice.severity, notice.confidence) == ("blocking", "unsure")
    assert (notice.reason, notice.todo) == (FIRST, ADVICE)


@pytest.mark.parametrize(("harmless", "severity"), [(True, "look"), (False, "blocking")])
def test_possibly_harmless_code_is_only_flagged_for_review(harmless: bool, severity: str) -> None:
    case = Case(
        calls=("tensorflow.cond",),
        en="first",
        zh="一",
        todo_en="do",
        todo_zh="做",
        severity="blocking",
        look_if=lambda *_: harmless,
    )
    (found,) = changes("import tensorflow as tf\n\ntf.cond(a)\n", case)
    assert isinstance(found, Notice)
    notice = found.remark
    assert notice.severity == severity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import apex\n", ["whole"]),
        ("import apex.amp.handle\n", ["amp"]),
        ("from apex import amp\n", ["amp"]),
        ("from apex import amp, mlp\n", ["amp", "part"]),
        ("from apex.contrib import a\n", ["part"]),
        ("from .apex import amp\n", []),
        ("import apex_of_mine\n", []),
        ("import numpy, apex\n", ["whole"]),
    ],
)
def test_each_part_that_a_statement_imports_is_reported(text: str, expected: list[str]) -> None:
    cases = (
        Case(imports=("apex.amp",), en="amp", zh=""),
        Case(imports=("apex.*",), en="part", zh=""),
        Case(imports=("apex",), en="whole", zh=""),
    )
    assert reasons(text, *cases, kind=ast.Import | ast.ImportFrom) == expected


def test_references_match_by_full_name() -> None:
    case = Case(references=("tensorflow.float64",), en="first", zh="一")
    text = "import tensorflow as tf\n\nx = tf.float64\ny = other.float64\nz = tf.float64.name\n"
    assert len(changes(text, case, kind=ast.Attribute)) == 2


def test_node_type_case_needs_no_name() -> None:
    case = Case(nodes=(ast.Constant,), when=(lambda node, _: node.value == 3,), en="first", zh="一")
    assert reasons("x = [1, 3]\n", case, kind=ast.Constant) == ["first"]


def test_messages_name_the_finding() -> None:
    case = Case(
        calls=("tensorflow.Session",),
        en="{name} | {code}",
        zh="{name}",
        todo_en="{target}.close()",
        todo_zh="{target}",
    )
    text = "import tensorflow as tf\n\nsess = tf.Session('')\n"
    (found,) = changes(text, case)
    assert isinstance(found, Notice)
    notice = found.remark
    assert notice.reason.en == "tf.Session | tf.Session('')"
    assert notice.todo.en == "sess.close()"
