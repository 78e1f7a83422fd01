import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.ground.pages import policy_hash
from jumar.porting.edits import Edit, FileReport, Finding, Language, Place, Text, TreeReport
from jumar.porting.report import page as page_module
from jumar.porting.report.page import render
from jumar.porting.report.saving import save_report
from jumar.porting.report.words import ENGLISH
from tests.porting.report.reports import hostile_report, ported_file, tree_report

VOID = {"meta", "br", "link", "img", "input", "col"}
REASON = Text(en="a reason", zh="原因说明")


class Reader(HTMLParser):
    """Tags with their attributes, and the texts of each, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.crossed.append(tag)
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def shown(self) -> str:
        """All that is not style or script."""
        return "".join(text for tag, text in self.texts if tag not in ("style", "script"))


def edit(line: int) -> Edit:
    place = Place(line=line, column=1)
    return Edit(
        rule="rule",
        place=place,
        place_after=place,
        before="",
        after="",
        reason=REASON,
        confidence="certain",
        source="",
    )


def long_file(path: str, lines: int, every: int) -> FileReport:
    before = [f"value_{number} = {number}\n" for number in range(lines)]
    after = list(before)
    edits: list[Edit] = []
    for number in range(every // 2, lines, every):
        after[number] = "changed = True\n"
        edits.append(edit(number + 1))
    return FileReport(
        path=path,
        status="ported",
        edits=tuple(edits),
        before="".join(before),
        after="".join(after),
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("report", [tree_report(), hostile_report()], ids=["small", "hostile"])
def test_every_tag_is_closed_in_order(report: TreeReport, language: Language) -> None:
    read = Reader(render(report, language))
    assert read.open == []
    assert read.crossed == []
    assert len(read.ids()) == len(set(read.ids()))


def test_nothing_external_is_loaded_and_only_our_script_runs() -> None:
    html = render(tree_report())
    read = Reader(html)
    names = ("src", "action", "data", "poster", "srcset", "xlink:href")
    assert not [attributes for _, attributes in read.tags if set(attributes) & set(names)]
    assert all(attributes["href"].startswith("#") for attributes in read.all("a"))
    assert not re.search(r"https?:|url\(|@import|<link|<iframe|<base", html)
    (policy,) = [meta["content"] for meta in read.all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_content_policy_allows_the_pages_style_and_script() -> None:
    html = render(tree_report())
    (policy,) = [meta["content"] for meta in Reader(html).all("meta") if "http-equiv" in meta]
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
        assert f"{tag}-src '{policy_hash(content)}'" in policy


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_tree_cannot_inject_tags_or_attributes(language: Language) -> None:
    hostile, tame = (Reader(render(r, language)) for r in (hostile_report(), tree_report()))
    assert len(hostile.all("script")) == 1
    assert hostile.all("img") == []
    assert {name for name, _ in hostile.tags} <= {name for name, _ in tame.tags}
    assert not [a for _, attributes in hostile.tags for a in attributes if a.startswith("on")]
    assert "{{7*7}}" in hostile.shown
    assert not set(hostile.shown) & set("\x1b\u202e")


def test_page_shows_both_sides_with_line_numbers() -> None:
    html = render(tree_report())
    rows = re.findall(r"<tr><td class=\"at\">(\d*)</td>(.*?)</tr>", html)
    assert [int(left) for left, _ in rows if left] == list(
        range(1, ported_file().before.count("\n") + 1)
    )
    rights = re.findall(r"<tr>.*?<td class=\"at\">\d*</td>.*?<td class=\"at\">(\d*)</td>", html)
    assert [int(right) for right in rights if right] == list(
        range(1, ported_file().after.count("\n") + 1)
    )


def test_every_edit_shows_rule_and_reason_at_its_line() -> None:
    html = render(tree_report())
    for number, found in enumerate(ported_file().edits):
        (row,) = re.findall(rf'<tr class="why edit" id="f3-e{number}".*?</tr>', html)
        shown = Reader(row).shown
        assert found.rule in shown
        assert found.reason.en.replace("`", "") in shown
        assert found.source in shown
        assert str(found.place) in shown


def test_every_finding_links_to_its_line() -> None:
    read = Reader(render(tree_report()))
    links = [attributes["href"].removeprefix("#") for attributes in read.all("a")]
    assert links == ["f3-d0", "f3-d1"]
    assert set(links) <= set(read.ids())


def test_equal_findings_are_grouped() -> None:
    files = tuple(replace(ported_file(), path=f"{name}.py") for name in "abc")
    html = render(TreeReport(root=".", files=files))
    cards = re.findall(r'<li class="finding.*?</ul>', html, flags=re.DOTALL)
    assert [card.count('data-kind="finding"') for card in cards] == [3, 3]
    assert [card.count("what to do") for card in cards] == [1, 1]


def test_finding_in_a_file_without_edits_is_listed_without_a_link() -> None:
    place = Place(line=7, column=3)
    found = Finding(
        rule="eager",
        place=place,
        place_after=place,
        code="tf.enable_eager_execution()",
        reason=REASON,
        todo=REASON,
        severity="blocking",
        confidence="certain",
        source="",
    )
    file = FileReport(path="eager.py", status="unchanged", findings=(found,))
    read = Reader(render(TreeReport(root=".", files=(file,))))
    assert read.all("a") == []
    assert "eager.py:7:3" in read.shown


def test_filters_cover_rule_severity_and_confidence_of_every_item() -> None:
    read = Reader(render(tree_report()))
    items = [attributes for _, attributes in read.tags if "data-rule" in attributes]
    kinds = [item["data-kind"] for item in items]
    assert (kinds.count("finding"), kinds.count("edit"), kinds.count("note")) == (2, 4, 2)
    offered = {option["value"] for option in read.all("option")} - {""}
    for item in items:
        wished = {item["data-rule"], item["data-severity"], item["data-confidence"]} - {""}
        assert wished <= offered


def test_chinese_page_has_no_english_words() -> None:
    html = render(tree_report(), "zh")
    assert '<html lang="zh-Hans">' in html
    shown = Reader(html).shown
    assert "队列算子只能在主机侧运行" in shown
    for word in (ENGLISH.first, ENGLISH.todo, ENGLISH.kept, ENGLISH.footer, ENGLISH.removed):
        assert word not in shown


def test_unchanged_lines_are_folded_once_and_counted() -> None:
    html = render(TreeReport(root=".", files=(long_file("a.py", 1000, 500),)))
    folds = re.findall(r'<details class="fold".*?<pre>\n(.*?)</pre>', html, flags=re.DOTALL)
    assert [len(fold.split("\n")) for fold in folds] == [247, 493, 246]
    assert html.count("value_20 = 20") == 1
    assert "unchanged lines: 247" in html


def test_large_file_shows_only_the_lines_around_edits() -> None:
    html = render(TreeReport(root=".", files=(long_file("a.py", 5000, 500),)))
    assert '<details class="fold"' not in html
    assert html.count('<p class="gap">') == 11
    assert "unchanged lines, left out of this page: 493" in html
    assert html.count("changed = True") == 10
    assert len(html) < 80_000


def test_page_of_a_large_tree_stays_small_and_says_what_is_omitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_module, "PAGE_CHARACTERS", 100_000)
    report = TreeReport(
        root=".", files=tuple(long_file(f"{number}.py", 300, 10) for number in range(20))
    )
    html = render(report)
    assert len(html) < 400_000
    left_out = html.count(ENGLISH.left_out_difference)
    assert 0 < left_out < 20
    assert html.count('<details class="file"') == 20


def test_very_long_line_is_truncated_around_its_changes() -> None:
    line = f"table = [{'1, ' * 5000}0]"
    file = FileReport(
        path="a.py", status="ported", edits=(edit(1),), before=line, after=f"{line} + [tail]"
    )
    html = render(TreeReport(root=".", files=(file,)))
    assert "characters left out: 14," in html
    assert "tail" in html
    assert len(html) < 45_000


def test_page_is_written_atomically(tmp_path: Path) -> None:
    save_report(tree_report(), tmp_path / "port.html", "zh")
    assert (tmp_path / "port.html").read_text(encoding="utf-8").endswith("</html>\n")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"port\.html"):
        save_report(tree_report(), tmp_path / "file" / "port.html")


def test_page_of_a_tree_without_files_says_so() -> None:
    shown = Reader(render(TreeReport(root=".", files=()))).shown
    assert ENGLISH.no_findings in shown
    assert ENGLISH.no_edits in shown
