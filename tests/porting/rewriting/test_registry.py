"""Rules by what they look at."""

import ast
import dataclasses
from collections.abc import Iterator

import pytest

from jumar.ground.errors import UserError
from jumar.porting.edits import Text
from jumar.porting.rewriting import changes, registry, reporting
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import all_rules, rule, rule_index, rule_named

TITLE = Text(en="title", zh="标题")


def check(node: ast.AST, view: object) -> Iterator[Change]:
    yield from ()


@pytest.fixture
def registered() -> Iterator[None]:
    """Rules of several kinds, gone again after the test."""
    known = {one.id for one in all_rules()}
    rule("test-calls", title=TITLE, source="s", calls=("a.b", "c.*", "d"))(check)
    rule("test-other", title=TITLE, source="s", calls=("a.b", "c.d.*"), minimal=False)(check)
    rule("test-names", title=TITLE, source="s", references=("a.b", "c"), nodes=(ast.If,))(check)
    rule("test-module", title=TITLE, source="s", language="torch")(check)
    reporting.report(
        "test-report",
        title=TITLE,
        source="s",
        language="torch",
        cases=(
            reporting.Case(calls=("e", "f"), references=("g",), en="why", zh="原因"),
            reporting.Case(calls=("f", "h"), nodes=(ast.Call, ast.With), en="why", zh="原因"),
            reporting.Case(imports=("i",), en="why", zh="原因"),
        ),
    )
    all_rules.cache_clear()
    rule_index.cache_clear()
    yield
    for name in set(registry._RULES) - known:
        del registry._RULES[name]
    all_rules.cache_clear()
    rule_index.cache_clear()


@pytest.mark.usefixtures("registered")
def test_rules_are_indexed_by_call_name_node_type_or_module() -> None:
    index = rule_index("tensorflow", False)

    def ours(found: Iterator[registry.Rule] | list[registry.Rule]) -> list[str]:
        return [one.id for one in found if one.id.startswith("test-")]

    assert ours(index.for_call("a.b")) == ["test-calls", "test-other"]
    assert ours(index.for_call("c.d.e")) == ["test-calls", "test-other"]
    assert ours(index.for_call("c.e")) == ["test-calls"]
    assert ours(index.for_call("c")) == []
    assert ours(index.for_call("d.e")) == []
    assert ours(index.by_reference["c"]) == ["test-names"]
    assert ours(index.by_node[ast.If]) == ["test-names"]
    assert ours(list(index.of_module)) == []
    assert index.has_calls
    minimal = rule_index("tensorflow", True)
    assert ours(minimal.for_call("a.b")) == ["test-calls"]
    torch = rule_index("torch", False)
    assert ours(list(torch.of_module)) == ["test-module"]
    assert ours(torch.for_call("a.b")) == []
    assert rule_index("torch", False) is torch


@pytest.mark.usefixtures("registered")
def test_reporting_rule_is_indexed_by_its_cases() -> None:
    found = rule_named("test-report")
    assert (found.id, found.title, found.source, found.language) == (
        *("test-report", TITLE, "s", "torch"),
    )
    assert (found.calls, found.references) == (("e", "f", "h"), ("g",))
    assert found.nodes == (ast.Import, ast.ImportFrom, ast.Call, ast.With)
    assert found.minimal
    assert rule_named("test-other").minimal is False


@pytest.mark.usefixtures("registered")
def test_rule_names_are_unique() -> None:
    assert [one.id for one in all_rules()] == sorted(one.id for one in all_rules())
    with pytest.raises(ValueError, match=r"^rule 'test-calls' is registered twice$"):
        rule("test-calls", title=TITLE, source="s")(check)
    with pytest.raises(UserError, match="unknown rule 'test-cals'\n  Did you mean 'test-calls'"):
        rule_named("test-cals")


def test_index_reports_a_lack_of_calls() -> None:
    index = registry.RuleIndex({}, (), {}, {}, ())
    assert not index.has_calls
    with pytest.raises(AttributeError):
        setattr(index, "of_module", ())  # noqa: B010
    a_rule = all_rules()[0]
    assert dataclasses.replace(index, by_call={"a": [a_rule]}).has_calls
    assert dataclasses.replace(index, by_call_prefix=(("a", a_rule),)).has_calls


@pytest.mark.parametrize(
    "kind",
    [
        *(changes.Replacement, changes.Rewrite, changes.Notice, changes.Leave),
        *(registry.Rule, reporting.Case),
    ],
)
def test_data_passed_by_rules_is_immutable_with_named_fields(kind: type) -> None:
    parameters = kind.__dataclass_params__  # pyright: ignore[reportAttributeAccessIssue]
    assert parameters.frozen
    assert all(one.kw_only for one in dataclasses.fields(kind))
