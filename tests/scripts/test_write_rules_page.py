"""The page of rules in docs/ is that of the rules and their examples."""

from scripts.write_rules_page import PAGE, read_examples, rules_page

from jumar.porting.rewriting.registry import all_rules


def test_rules_page_is_up_to_date() -> None:
    page = rules_page({rule: read_examples(rule) for rule in all_rules()})
    assert PAGE.read_text(encoding="utf-8") == page, "run: python scripts/write_rules_page.py"


def test_every_rule_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for rule in all_rules():
        assert f"### {rule.id}\n" in text
