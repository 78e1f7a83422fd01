"""Write docs/port-rules.md from the rules of `jumar port` and their examples.

Examples lie below tests/porting/rules/examples/RULE:

    1-NAME/before.py        a script as it is
    1-NAME/after.py         as it is ported; missing where it is only reported
    1-NAME/options.json     options of the port, where there are any: {"devices": 8}
    untouched/NAME.py       a script in which the rule changes nothing
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jumar.porting.options import PortOptions, parse_loss_scale
from jumar.porting.rewriting.registry import Language, Rule, all_rules

CHECKOUT = Path(__file__).resolve().parents[1]
PAGE = CHECKOUT / "docs" / "port-rules.md"
EXAMPLES = CHECKOUT / "tests" / "porting" / "rules" / "examples"

_LANGUAGES = {"tensorflow": "TensorFlow 1.15", "torch": "PyTorch"}
_HEAD = """# What `jumar port` rewrites

Made from the rules by `python scripts/write_rules_page.py`; each example is a test.

A rule acts on what a name means, not on how it is spelt: aliases, `from x import y`, \
`tensorflow.compat.v1` and imports through the modules of the tree are followed. A method such as \
`.batch` is only touched where the object is known to be TensorFlow's.
"""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A script and its port with some options."""

    name: str
    before: str
    after: str
    options: PortOptions


@dataclass(frozen=True, kw_only=True)
class RuleExamples:
    """The examples of one rule, and by name the scripts that it must leave alone."""

    examples: tuple[Example, ...]
    untouched: Mapping[str, str]


def read_examples(rule: Rule, folder: Path = EXAMPLES) -> RuleExamples:
    """The examples of a rule, in the order of their names."""
    untouched = sorted((folder / rule.id / "untouched").glob("*.py"))
    return RuleExamples(
        examples=tuple(
            _example(before.parent, rule.language)
            for before in sorted((folder / rule.id).glob("*/before.py"))
        ),
        untouched={path.stem: _text(path) for path in untouched},
    )


def rules_page(examples: Mapping[Rule, RuleExamples]) -> str:
    """Every rule with its source, its examples as diffs, and how many scripts it leaves alone."""
    parts = [_HEAD]
    for language, title in _LANGUAGES.items():
        chosen = [rule for rule in examples if rule.language == language]
        parts.append(f"## {title}\n")
        parts.append("| rule | what it does |\n|---|---|")
        parts += [f"| [`{rule.id}`](#{rule.id}) | {_cell(rule.title.en)} |" for rule in chosen]
        parts.append("")
        parts += [_section(rule, examples[rule]) for rule in chosen]
    return "\n".join(parts).rstrip("\n") + "\n"


def _example(folder: Path, language: Language) -> Example:
    before, after, options = (folder / name for name in ("before.py", "after.py", "options.json"))
    fields = json.loads(_text(options)) if options.exists() else {}
    if "loss_scale" in fields:
        fields["loss_scale"] = parse_loss_scale(fields["loss_scale"])
    return Example(
        name=folder.name,
        before=_text(before),
        after=_text(after if after.exists() else before),
        options=PortOptions(source=language, **fields),
    )


def _text(path: Path) -> str:
    # Not read_text(), which would turn every line end into that of Unix.
    return path.read_bytes().decode()


def _section(rule: Rule, examples: RuleExamples) -> str:
    lines = [f"### {rule.id}", "", f"{rule.title.en}. {rule.title.zh}。", ""]
    lines.append(f"Source: {rule.source}.")
    if not rule.minimal:
        lines[-1] += " Left out with `--minimal`."
    if examples.untouched:
        lines[-1] += f" Tested on {len(examples.untouched)} sources that it must leave alone."
    lines.append("")
    for example in examples.examples:
        lines += _shown(example)
    return "\n".join(lines)


def _shown(example: Example) -> list[str]:
    if example.before == example.after:
        return ["Reported, not rewritten:", "", "```python", *_lines(example.before), "```", ""]
    plain = PortOptions(source=example.options.source)
    typed = [] if example.options == plain else list(example.options.as_typed())
    head = [f"With `{' '.join(typed)}`:", ""] if typed else []
    before, after = _lines(example.before), _lines(example.after)
    diff = [line.rstrip("\n") for line in difflib.ndiff(before, after) if line[0] != "?"]
    return [*head, "```diff", *diff, "```", ""]


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(
        rules_page({rule: read_examples(rule) for rule in all_rules()}), encoding="utf-8"
    )
    print(PAGE)
