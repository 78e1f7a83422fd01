"""The page of rules, made from the rules themselves."""

import difflib

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.registry import Example, Rule

_LANGUAGES = {"tensorflow": "TensorFlow 1.15", "torch": "PyTorch"}
_HEAD = """# What `jumar port` rewrites

Made from the rules by `python scripts/write_rules_page.py`; each example is a test.

A rule acts on what a name means, not on how it is spelt: aliases, `from x import y`, \
`tensorflow.compat.v1` and imports through the modules of the tree are followed. A method such as \
`.batch` is only touched where the object is known to be TensorFlow's.
"""


def rules_page(rules: tuple[Rule, ...]) -> str:
    """Every rule with its knowledge, its examples as diffs, and how much it leaves alone."""
    parts = [_HEAD]
    for language, title in _LANGUAGES.items():
        chosen = [rule for rule in rules if rule.language == language]
        if not chosen:
            continue
        parts.append(f"## {title}\n")
        parts.append("| rule | what it does |\n|---|---|")
        parts += [f"| [`{rule.id}`](#{rule.id}) | {_cell(rule.title.en)} |" for rule in chosen]
        parts.append("")
        parts += [_section(rule) for rule in chosen]
    return "\n".join(parts).rstrip("\n") + "\n"


def _section(rule: Rule) -> str:
    lines = [f"### {rule.id}", "", f"{rule.title.en}. {rule.title.zh}。", ""]
    lines.append(f"Source: {rule.source}.")
    if not rule.minimal:
        lines[-1] += " Left out with `--minimal`."
    if rule.untouched:
        lines[-1] += f" Tested on {len(rule.untouched)} sources that it must leave alone."
    lines.append("")
    for example in rule.examples:
        lines += _example(example)
    return "\n".join(lines)


def _example(example: Example) -> list[str]:
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
