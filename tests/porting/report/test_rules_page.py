"""The page of rules in docs/ is that of the rules."""

from pathlib import Path

from jumar.porting.report.rules_page import rules_page
from jumar.porting.rewriting.registry import all_rules

PAGE = Path(__file__).resolve().parents[3] / "docs" / "port-rules.md"


def test_the_page_of_rules_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == rules_page(all_rules()), (
        "run: python scripts/write_rules_page.py"
    )


def test_every_rule_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for rule in all_rules():
        assert f"### {rule.id}\n" in text
