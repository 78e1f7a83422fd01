"""Write docs/port-rules.md from the rules of `jumar port`."""

from pathlib import Path

from jumar.porting.report.rules_page import rules_page
from jumar.porting.rewriting.registry import all_rules

PAGE = Path(__file__).resolve().parents[1] / "docs" / "port-rules.md"

if __name__ == "__main__":
    PAGE.write_text(rules_page(all_rules()), encoding="utf-8")
    print(PAGE)
