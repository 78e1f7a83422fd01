"""One script through all rules."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.write_rules_page import Example, read_examples

from jumar.porting.options import LossScale, PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.rewriting.registry import all_rules
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
def test_with_every_option_examples_still_come_to_an_end(language: str, example: Example) -> None:
    if language == "torch":
        return
    first = port_file(SourceText(example.before), "script.py", NOWHERE, EVERYTHING)
    text = first.after if first.status == "ported" else example.before
    again = port_file(SourceText(text), "script.py", NOWHERE, EVERYTHING)
    assert again.status == "unchanged", again.edits
    assert not [found for found in first.findings if "do not come to an end" in found.reason.en]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(SOURCES), min_size=2, max_size=4, unique=True), st.booleans())
def test_scripts_put_together_come_to_an_end(parts: list[str], everything: bool) -> None:
    text = "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
    options = EVERYTHING if everything else PortOptions()
    first = port_file(SourceText(text), "script.py", NOWHERE, options)
    assert first.status != "unreadable"
    after = first.after if first.status == "ported" else text
    again = port_file(SourceText(after), "script.py", NOWHERE, options)
    assert again.status == "unchanged", [
        (edit.rule, edit.before, edit.after) for edit in again.edits
    ]


def test_what_cannot_be_parsed_says_why() -> None:
    report = port_file(
        SourceText("import tensorflow as tf\ndef (:\n"), "a.py", NOWHERE, PortOptions()
    )
    assert report.status == "unreadable"
    assert report.note is not None
    assert "line 2" in report.note.en
