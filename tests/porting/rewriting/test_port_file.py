"""One script through all rules."""

import ast
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.write_rules_page import Example, read_examples

from jumar.porting.edits import FileReport, Place, Remark, Text
from jumar.porting.options import LossScale, PortOptions
from jumar.porting.rewriting import port_file as rounds_of
from jumar.porting.rewriting import registry
from jumar.porting.rewriting.changes import Change, Leave, Notice, Replacement, Rewrite
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.rewriting.registry import Check, all_rules, rule, rule_index
from jumar.porting.rewriting.view import View
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

NOWHERE = Project(Path("nowhere"))
EVERYTHING = PortOptions(
    precision="allow_mix_precision",
    loss_scale=LossScale(kind="exponential", init_loss_scale=2.0**32),
    devices=8,
    profiling=True,
    overflow_dump=True,
)
EXAMPLES = [
    pytest.param(rule.language, example, id=f"{rule.id}-{example.name}")
    for rule in all_rules()
    for example in read_examples(rule).examples
]
SOURCES = [
    example.before
    for rule in all_rules()
    for example in read_examples(rule).examples
    if rule.language == "tensorflow" and "from __future__" not in example.before
]


@pytest.mark.parametrize(("language", "example"), EXAMPLES)
def test_porting_terminates_on_examples_with_every_option(language: str, example: Example) -> None:
    if language == "torch":
        return
    first = port_file(SourceText(example.before), "script.py", NOWHERE, EVERYTHING)
    text = first.after if first.status == "ported" else example.before
    again = port_file(SourceText(text), "script.py", NOWHERE, EVERYTHING)
    assert again.status == "unchanged", again.edits
    assert not [found for found in first.findings if "do not come to an end" in found.reason.en]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(SOURCES), min_size=2, max_size=4, unique=True), st.booleans())
def test_porting_terminates_on_concatenated_scripts(parts: list[str], everything: bool) -> None:
    text = "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
    options = EVERYTHING if everything else PortOptions()
    first = port_file(SourceText(text), "script.py", NOWHERE, options)
    assert first.status != "unreadable"
    after = first.after if first.status == "ported" else text
    again = port_file(SourceText(after), "script.py", NOWHERE, options)
    assert again.status == "unchanged", [
        (edit.rule, edit.before, edit.after) for edit in again.edits
    ]


def test_unparsable_script_is_reported_with_the_reason() -> None:
    report = port_file(
        SourceText("import tensorflow as tf\ndef (:\n"), "a.py", NOWHERE, PortOptions()
    )
    assert report.status == "unreadable"
    assert report.note is not None
    assert "line 2" in report.note.en


def _told(report: FileReport) -> list[tuple[str, str, str, str, str]]:
    """Rule, places before and after, and the code before and after of each edit."""
    return [
        (edit.rule, str(edit.place), str(edit.place_after), edit.before, edit.after)
        for edit in report.edits
    ]


IMPORT = "from npu_bridge.npu_init import npu_config_proto"


def test_edits_and_findings_are_located_in_both_texts() -> None:
    text = (
        "import tensorflow as tf\n\nif a:\n    config = tf.ConfigProto()\n"
        "    config.gpu_options.allow_growth = True\nwith tf.Session(config=config) as s:\n"
        "    s.run(x)\nmask = tf.where(m, x, -1e30)\n"
    )
    report = port_file(SourceText(text, bom=True), "a.py", NOWHERE, PortOptions())
    session = "tf.Session(config=npu_config_proto(config_proto=config))"
    assert (report.path, report.status, report.before) == ("a.py", "ported", f"\ufeff{text}")
    assert report.after == (
        f"\ufeffimport tensorflow as tf\n{IMPORT}\n\nif a:\n    config = tf.ConfigProto()\n"
        f"with {session} as s:\n    s.run(x)\nmask = tf.where(m, x, -1e30)\n"
    )
    growth = "config.gpu_options.allow_growth = True"
    assert _told(report) == [
        ("npu-import", "2:1", "2:1", "", IMPORT),
        ("gpu-options", "5:5", "None", growth, ""),
        ("session-config", "6:6", "6:6", "tf.Session(config=config)", session),
    ]
    assert report.edits[0].source == "npu_init.py of Ascend/tensorflow, which has no __all__"
    assert report.edits[0].reason.en.startswith("the new code's imports are listed by name")
    (finding,) = report.findings
    assert (finding.rule, finding.code, finding.severity) == (
        *("mask-constants", "-1e30", "accuracy"),
    )
    assert (str(finding.place), str(finding.place_after)) == ("8:23", "8:23")
    assert port_file(SourceText(report.after[1:]), "a.py", NOWHERE, PortOptions()).before == ""


def test_functions_added_by_the_port_have_their_own_reason() -> None:
    mixed = PortOptions(precision="allow_mix_precision")
    text = f"import tensorflow as tf\n{IMPORT}\ns = tf.Session()\n"
    report = port_file(SourceText(text), "a.py", NOWHERE, mixed)
    added, session = report.edits
    assert added.after.startswith("def npu_session_config(config=None):\n")
    assert (str(added.place), str(added.place_after), added.before) == ("3:1", "3:1", "")
    assert added.reason.en == "the session options of this port, in one place"
    assert added.source == "npu_init.py of Ascend/tensorflow, which has no __all__"
    assert (str(session.place), str(session.place_after)) == ("3:5", "12:5")
    torch = port_file(
        SourceText("import torch\nx = y.cuda()\n"), "a.py", NOWHERE, PortOptions(source="torch")
    )
    (imported, _) = torch.edits
    assert (imported.after, imported.source) == (
        *("import torch_npu", "quick start of Ascend/pytorch (torch_npu)"),
    )
    assert imported.reason.en.startswith("importing torch_npu registers the device 'npu'")


def test_python_2_script_is_converted_with_locations_in_its_original_text() -> None:
    text = 'import tensorflow as tf\n\nprint "é", tf.Session()\n'
    report = port_file(SourceText(text), "a.py", NOWHERE, PortOptions())
    assert report.after == (
        f'import tensorflow as tf\n{IMPORT}\n\nprint("é", tf.Session(config=npu_config_proto()))\n'
    )
    assert _told(report) == [
        ("npu-import", "2:1", "2:1", "", IMPORT),
        ("python2-print", "3:1", "4:1", 'print "é", tf.Session()', 'print("é", tf.Session())'),
        ("session-config", "3:12", "4:12", "tf.Session()", "tf.Session(config=npu_config_proto())"),
    ]


def test_script_that_does_not_mention_the_library_is_skipped() -> None:
    text = "import numpy\nprint 1\n"
    quiet = port_file(SourceText(text), "a.py", NOWHERE, PortOptions())
    assert quiet == FileReport(path="a.py", status="unchanged")
    asked = port_file(SourceText(text), "a.py", NOWHERE, PortOptions(), force=True)
    assert asked.after == "import numpy\nprint(1)\n"


def test_too_deeply_nested_script_is_reported() -> None:
    text = "tf = " + "-" * 200_000 + "1\n"
    report = port_file(SourceText(text), "a.py", NOWHERE, PortOptions())
    assert report.status == "unreadable"
    assert report.note is not None
    assert report.note in (
        Text(en="does not fit in memory", zh="内存不足，无法读取"),
        Text(
            en="too deeply nested to be read (RecursionError)",
            zh="嵌套过深，无法读取（RecursionError）",
        ),
    )


@pytest.fixture
def own_rule() -> Iterator[Callable[[Check], None]]:
    """Registers a rule for each name, alone with those of TensorFlow, gone after the test."""
    names: list[str] = []

    def add(check: Check) -> None:
        names.append(f"test-{len(names)}")
        title = Text(en="", zh="")
        rule(names[-1], title=title, source="a test", nodes=(ast.Name, ast.With))(check)
        all_rules.cache_clear()
        rule_index.cache_clear()

    yield add
    for name in names:
        del registry._RULES[name]
    all_rules.cache_clear()
    rule_index.cache_clear()


Adding = Callable[[Check], None]
REASON = Text(en="because", zh="因为")


def _renamed(old: str, new: str) -> Check:
    def check(node: ast.AST, view: View) -> Iterator[Change]:
        if isinstance(node, ast.Name) and node.id == old:
            start, end = view.module.span(node)
            change = Replacement(start=start, end=end, text=new)
            yield Rewrite(node=node, replacements=(change,), reason=REASON)

    return check


def _ported(text: str) -> FileReport:
    return port_file(SourceText(text), "a.py", NOWHERE, PortOptions(), force=True)


@pytest.mark.parametrize(("rounds", "settles"), [(5, True), (6, False)])
def test_rules_reach_a_fixed_point_within_six_rounds(
    own_rule: Adding, rounds: int, settles: bool
) -> None:
    for number in range(rounds):
        own_rule(_renamed(f"x{number}", f"x{number + 1}"))
    report = _ported("y = 1\nx0\n")
    if settles:
        assert report.after == "y = 1\nx5\n"
        assert len(report.edits) == 5
        assert report.findings == ()
        return
    assert (report.status, report.edits, report.before, report.after) == ("unchanged", (), "", "")
    (finding,) = report.findings
    assert (finding.rule, finding.place, finding.place_after, finding.code) == (
        *("test-5", Place(line=2, column=1), None, "x5"),
    )
    assert (finding.severity, finding.confidence, finding.source) == (
        *("blocking", "certain", "a test"),
    )
    assert finding.reason.en == (
        "the rules do not converge on this script, which is left unchanged (test-5)"
    )
    assert finding.todo.en == "port it by hand, and please report it: this is a bug in jumar"


def test_script_is_unchanged_if_a_rewrite_is_not_valid_python(own_rule: Adding) -> None:
    own_rule(_renamed("x", "good"))
    own_rule(_renamed("y", "not )"))
    report = _ported("x\ny\n")
    assert (report.status, report.edits, report.after) == ("unchanged", (), "")
    (finding,) = report.findings
    assert (finding.rule, finding.code, finding.severity) == ("test-1", "y", "blocking")
    # The other rewrite has nothing to do with it.
    assert finding.reason.en.endswith("(test-1)")
    assert finding.reason.zh.endswith("（test-1）")


def test_findings_are_reported_once_and_kept_code_is_that_of_the_first_round(
    own_rule: Adding,
) -> None:
    own_rule(_renamed("x", "longer"))

    def check(node: ast.AST, view: View) -> Iterator[Change]:
        if isinstance(node, ast.Name):
            yield Notice(node=node, remark=Remark(en="because", zh="因为", severity="speed"))
            yield Leave(node=node, reason=REASON)

    own_rule(check)
    report = _ported("(x, y)\n" + "z" * 1501 + "; " + "w" * 1500 + "\n")
    found = [(one.code[:3], str(one.place), str(one.place_after)) for one in report.findings]
    assert found == [
        *(("x", "1:2", "1:2"), ("y", "1:5", "1:10"), ("zzz", "2:1", "2:1")),
        ("www", "2:1504", "2:1504"),
    ]
    assert [(one.rule, one.reason, one.todo, one.severity) for one in report.findings] == [
        ("test-1", REASON, Text(en="", zh=""), "speed")
    ] * 4
    assert [one.code for one in report.findings[2:]] == ["z" * 1500 + "…", "w" * 1500]
    assert [(one.rule, one.code[:1], str(one.place), one.reason) for one in report.kept] == [
        ("test-1", "x", "1:2", REASON),
        ("test-1", "y", "1:5", REASON),
        ("test-1", "z", "2:1", REASON),
        ("test-1", "w", "2:1504", REASON),
    ]


@pytest.mark.parametrize(("gap", "near"), [(200, True), (201, False)])
@pytest.mark.parametrize("before", [True, False])
def test_change_near_its_node_is_shown_with_it(
    own_rule: Adding, gap: int, near: bool, before: bool
) -> None:
    def check(node: ast.AST, view: View) -> Iterator[Change]:
        if isinstance(node, ast.Name) and node.id == "x" and "new" not in view.module.text:
            start, end = view.module.span(node)
            place = start - gap if before else end + gap
            side: Literal["plain", "close"] = "plain" if before else "close"
            changes = (
                Replacement(start=start, end=end, text="y"),
                Replacement(start=place, end=place, text="new\n", side=side),
            )
            yield Rewrite(node=node, replacements=changes, reason=REASON)

    own_rule(check)
    filling = "#" * 98 + "\n"
    blanks = filling * 2 + "\n" * (gap - 198)
    text = f"a\n{blanks}x\n{filling * 3}" if before else f"a\nx{chr(10) + blanks[:-1]}b\n"
    (edit,) = _ported(text).edits
    if not near:
        assert (edit.before, edit.after) == ("x", "y")
    elif before:
        assert edit.before == (blanks + "x").strip()
        assert edit.after == f"new\n{blanks}y"
    else:
        assert edit.before == f"x\n{blanks[:-1]}".strip()
        assert edit.after == f"y\n{blanks[:-1]}new"


def test_only_changed_lines_of_a_compound_statement_are_shown(own_rule: Adding) -> None:
    def check(node: ast.AST, view: View) -> Iterator[Change]:
        if isinstance(node, ast.With) and "new" not in view.module.text:
            start, _ = view.module.span(node)
            change = Replacement(start=start, end=start, text="new\n")
            inner = view.module.text.index("x")
            replaced = Replacement(start=inner, end=inner + 1, text="y")
            yield Rewrite(node=node, replacements=(change, replaced), reason=REASON)

    own_rule(check)
    report = _ported("a\nwith x as b:\n    c\n    d\n")
    assert _told(report) == [("test-0", "2:1", "2:1", "with x", "new\nwith y")]


def test_state_passed_between_rounds_is_immutable() -> None:
    kinds = [one for one in vars(rounds_of).values() if dataclasses.is_dataclass(one)]
    own = [one for one in kinds if one.__module__ == rounds_of.__name__]
    assert len(own) == 2
    assert all(one.__dataclass_params__.frozen for one in own)  # pyright: ignore
