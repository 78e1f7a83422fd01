"""The registry of rules: each rule is registered by a decorator in its own file below `rules/`."""

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from jumar.ground.errors import unknown_name
from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Changes
from jumar.porting.rewriting.view import View

Language = Literal["tensorflow", "torch"]
Check = Callable[..., Changes]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A porting rule.

    Args:
        id: The rule's name, such as `session-config`.
        title: What the rule does, in one line.
        source: The documents or code that the rule is based on.
        calls: Qualified names; the rule sees each call of one, or of a class that inherits from
            one. `tensorflow.train.*` stands for all names below it.
        references: Qualified names; the rule sees each expression that refers to one.
        nodes: Types of syntax nodes; the rule sees each of them, regardless of names.
        check: Called with a node and the `View`; yields changes. A rule without calls, references
            and nodes is called once with the whole module.
        minimal: Whether it also applies with `--minimal`.
    """

    id: str
    title: Text
    source: str
    check: Check
    language: Language
    calls: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    nodes: tuple[type[ast.AST], ...] = ()
    minimal: bool = True


_RULES: dict[str, Rule] = {}


def rule(
    id: str,
    *,
    title: Text,
    source: str,
    language: Language = "tensorflow",
    calls: tuple[str, ...] = (),
    references: tuple[str, ...] = (),
    nodes: tuple[type[ast.AST], ...] = (),
    minimal: bool = True,
) -> Callable[[Check], Check]:
    """Register a function as a rule; the arguments are the fields of `Rule`."""

    def register(check: Check) -> Check:
        if id in _RULES:
            raise ValueError(f"rule '{id}' is registered twice")
        _RULES[id] = Rule(
            id=id,
            title=title,
            source=source,
            check=check,
            language=language,
            calls=calls,
            references=references,
            nodes=nodes,
            minimal=minimal,
        )
        return check

    return register


@cache
def all_rules() -> tuple[Rule, ...]:
    """All rules, sorted by id."""
    from jumar.porting import rules

    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        importlib.import_module(module.name)
    return tuple(_RULES[name] for name in sorted(_RULES))


def rule_named(name: str) -> Rule:
    """Return the rule with an id.

    Raises:
        UserError: No rule has it.
    """
    rules = {rule.id: rule for rule in all_rules()}
    if name not in rules:
        raise unknown_name("rule", name, rules)
    return rules[name]


@dataclass(frozen=True)
class RuleIndex:
    """The rules of one port, indexed by the nodes that they apply to."""

    by_call: dict[str, list[Rule]]
    by_call_prefix: tuple[tuple[str, Rule], ...]
    by_reference: dict[str, list[Rule]]
    by_node: dict[type[ast.AST], list[Rule]]
    of_module: tuple[Rule, ...]

    @property
    def has_calls(self) -> bool:
        return bool(self.by_call or self.by_call_prefix)

    def for_call(self, name: str) -> Iterator[Rule]:
        yield from self.by_call.get(name, ())
        for prefix, rule in self.by_call_prefix:
            if name.startswith(prefix):
                yield rule


@cache
def rule_index(language: Language, minimal: bool) -> RuleIndex:
    """Index the rules for a framework; with `minimal`, only those that apply with `--minimal`."""
    rules = [
        rule for rule in all_rules() if rule.language == language and (rule.minimal or not minimal)
    ]
    by_call: dict[str, list[Rule]] = {}
    prefixes: list[tuple[str, Rule]] = []
    by_reference: dict[str, list[Rule]] = {}
    by_node: dict[type[ast.AST], list[Rule]] = {}
    for rule in rules:
        for name in rule.calls:
            if name.endswith("*"):
                prefixes.append((name[:-1], rule))
            else:
                by_call.setdefault(name, []).append(rule)
        for name in rule.references:
            by_reference.setdefault(name, []).append(rule)
        for node in rule.nodes:
            by_node.setdefault(node, []).append(rule)
    return RuleIndex(
        by_call=by_call,
        by_call_prefix=tuple(prefixes),
        by_reference=by_reference,
        by_node=by_node,
        of_module=tuple(
            rule for rule in rules if not (rule.calls or rule.references or rule.nodes)
        ),
    )


__all__ = ["Rule", "View", "all_rules", "rule", "rule_index", "rule_named"]
