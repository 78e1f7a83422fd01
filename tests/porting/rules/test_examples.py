"""Every rule, on its examples and on what it must leave unchanged."""

import ast
from pathlib import Path

import pytest
from scripts.write_rules_page import EXAMPLES as FOLDER
from scripts.write_rules_page import Example, read_examples

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.rewriting.registry import Rule, all_rules
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

NOWHERE = Project(Path("nowhere"))
EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.id}-{example.name}")
    for rule in all_rules()
    for example in read_examples(rule).examples
]
UNTOUCHED = [
    pytest.param(rule, source, id=f"{rule.id}-{name}")
    for rule in all_rules()
    for name, source in read_examples(rule).untouched.items()
]


def port(text: str, options: PortOptions) -> FileReport:
    return port_file(SourceText(text), "script.py", NOWHERE, options)


def result(report: FileReport, text: str) -> str:
    return report.after if report.status == "ported" else text


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_examples_are_rewritten_as_recorded(rule: Rule, example: Example) -> None:
    report = port(example.before, example.options)
    assert result(report, example.before) == example.after
    acted = {edit.rule for edit in report.edits} | {found.rule for found in report.findings}
    assert rule.id in acted


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_ported_examples_parse_and_do_not_change_again(rule: Rule, example: Example) -> None:
    ast.parse(example.after)
    report = port(example.after, example.options)
    assert result(report, example.after) == example.after
    assert not report.edits


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_edits_of_an_example_are_at_their_stated_locations(rule: Rule, example: Example) -> None:
    report = port(example.before, example.options)
    before, after = example.before.split("\n"), result(report, example.before).split("\n")
    for edit in report.edits:
        if edit.before:
            line = before[edit.place.line - 1][edit.place.column - 1 :]
            assert edit.before.startswith(line.strip()) or line.startswith(
                edit.before.split("\n")[0]
            )
        if edit.place_after is not None and edit.after:
            line = after[edit.place_after.line - 1][edit.place_after.column - 1 :]
            assert line.startswith(edit.after.split("\n")[0].strip()) or edit.after.startswith(
                line.strip()
            )


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_every_edit_of_an_example_shows_its_change(rule: Rule, example: Example) -> None:
    for edit in port(example.before, example.options).edits:
        assert edit.before != edit.after


@pytest.mark.parametrize(("rule", "source"), UNTOUCHED)
def test_code_a_rule_must_leave_is_unchanged(rule: Rule, source: str) -> None:
    ast.parse(source)
    report = port(source, PortOptions(source=rule.language))
    assert not [edit for edit in report.edits if edit.rule == rule.id]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_rules_have_examples_and_more_counterexamples(rule: Rule) -> None:
    given = read_examples(rule)
    assert given.examples or given.untouched
    assert rule.title.en
    assert rule.title.zh
    assert rule.source


def test_every_example_belongs_to_a_rule_and_is_read() -> None:
    read = {
        FOLDER / rule.id / inner
        for rule in all_rules()
        for given in [read_examples(rule)]
        for inner in [
            *(f"{example.name}/before.py" for example in given.examples),
            *(f"untouched/{name}.py" for name in given.untouched),
        ]
    }
    beside = {"after.py", "options.json"}
    stored = {path for path in FOLDER.rglob("*") if path.is_file()}
    assert {path for path in stored if path.name not in beside} == read
    assert {path.with_name("before.py") for path in stored if path.name in beside} <= read


def test_examples_are_not_collected_as_tests() -> None:
    assert not [*FOLDER.rglob("test_*.py"), *FOLDER.rglob("*_test.py")]
