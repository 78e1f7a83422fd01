import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jumar.porting.edits import Language
from jumar.porting.report.markdown import code, code_cell, markdown, prose
from jumar.porting.report.showing import one_line, visible
from tests.porting.report.reports import hostile_report, ported_file, tree_report

READER = MarkdownIt("commonmark").enable("table")


def tokens(text: str) -> list[Token]:
    """Everything that a reader of Markdown sees in a document, from top to bottom."""
    return [
        inner
        for token in READER.parse(text)
        for inner in ([token] if token.children is None else [token, *token.children])
    ]


def headings(text: str) -> list[str]:
    read = READER.parse(text)
    return [
        read[index + 1].content for index, token in enumerate(read) if token.type == "heading_open"
    ]


@given(text=st.text(alphabet="`|a b\\*_<>[]\n完", max_size=30))
def test_code_round_trips_through_markdown(text: str) -> None:
    shown = one_line(text)
    if not shown.strip():
        assert code(text) == ""
        return
    (span,) = [token for token in tokens(f"x {code(text)} y") if token.type == "code_inline"]
    assert span.content == shown
    table = f"| a | b |\n|---|---|\n| {code_cell(text)} | c |"
    cells = [token for token in READER.parse(table) if token.type == "td_open"]
    (span,) = [token for token in tokens(table) if token.type == "code_inline"]
    assert len(cells) == 2
    assert span.content == shown


@given(text=st.text(alphabet="`|ab \\*_<>[]()!#&~$完", max_size=30))
def test_sentences_round_trip_through_markdown(text: str) -> None:
    read = tokens(f"x {prose(text)} y")
    assert {token.type for token in read} <= {
        "paragraph_open", "paragraph_close", "inline", "text", "code_inline", "text_special"
    }  # fmt: skip
    words = "".join(t.content for t in read if t.type in ("text", "code_inline", "text_special"))
    assert words.replace("`", "").split() == ["x", *text.replace("`", "").split(), "y"]


@pytest.mark.parametrize("name", ["__all__", "_", "a_b", "__init__.py", "_x_ y", "*args, **kw"])
def test_names_in_a_sentence_are_neither_bold_nor_truncated(name: str) -> None:
    (inline,) = [token for token in READER.parse(prose(f"it has no {name}")) if token.children]
    assert "".join(part.content for part in inline.children or ()) == f"it has no {name}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_tree_cannot_inject_html_or_links(language: Language) -> None:
    read = tokens(markdown(hostile_report(), language, list_kept=True))
    kinds = {token.type for token in read}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}


def test_names_of_options_stay_readable_in_the_source() -> None:
    assert "mix_compile_mode=True" in markdown(tree_report())


def test_manual_work_precedes_the_edits_worst_first() -> None:
    found = headings(markdown(tree_report()))
    assert found == [
        "Port of networks/small",
        "By rule",
        "To do by hand",
        "blocking (does not run on the NPU as it is)",
        "speed (runs, but slowly)",
        "Every edit",
        "`train.py`",
        "Files without edits",
        "Left on purpose",
    ]


def test_finding_has_old_and_new_location_and_advice() -> None:
    text = markdown(tree_report())
    for said in (
        "`train.py:15:13 → 16:13`",
        "`tf.train.string_input_producer(names, shuffle=True)`",
        "Queues run on the host; the device cannot hold them.",
        "**what to do**: Read with `tf.data`, or set mix_compile_mode=True.",
        "source: Facenet_ID0122 of the model zoo",
        "`train.py:25:13 → removed`",
    ):
        assert said in text


def test_each_edit_has_its_own_diff() -> None:
    fences = [token for token in READER.parse(markdown(tree_report())) if token.type == "fence"]
    assert {fence.info for fence in fences} == {"diff"}
    assert [fence.content for fence in fences] == [
        "".join(f"-{line}\n" for line in edit.before.splitlines())
        + "".join(f"+{line}\n" for line in edit.after.splitlines())
        for edit in ported_file().edits
    ]


def test_fence_in_the_source_does_not_end_the_diff() -> None:
    fences = [token for token in READER.parse(markdown(hostile_report())) if token.type == "fence"]
    (edit,) = hostile_report().files[1].edits
    assert [fence.content for fence in fences] == [
        f"-{visible(edit.before)}\n+{visible(edit.after)}\n"
    ]


def test_kept_code_is_counted_and_listed_only_on_request() -> None:
    place = "`train.py:11:12`"
    assert "- `dropout`: 1" in markdown(tree_report())
    assert place not in markdown(tree_report())
    assert place in markdown(tree_report(), list_kept=True)


def test_chinese_report_is_entirely_in_chinese() -> None:
    text = markdown(tree_report(), "zh")
    assert "队列算子只能在主机侧运行" in text
    for word in ("what to do", "findings", "Every edit", "removed", "reason"):
        assert word not in text
