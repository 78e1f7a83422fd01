"""What was read, and what is missing, in a line each."""

from jumar.profiling.profile import (
    HOST_SCHEMA,
    OPS_SCHEMA,
    Missing,
    Profile,
)
from jumar.profiling.texts import TEXTS, missing_lines, summary_line, texts_in
from tests.profiling.generated import frame


def profile(ops: int, calls: int, ranks: int = 1, chip: str = "", *gaps: Missing) -> Profile:
    return Profile(
        source="a\x1b",
        producer="msprof",
        kind="npu",
        ops=frame([{"rank": place % ranks} for place in range(ops)], OPS_SCHEMA),
        host=frame([{}] * calls, HOST_SCHEMA),
        chip=chip,
        missing=gaps,
    )


def test_read_items_are_counted_in_both_languages() -> None:
    one = profile(1, 1)
    assert summary_line(one, "en") == "a\\x1b: msprof, npu; 1 op, 1 host call"
    assert summary_line(one, "zh") == "a\\x1b: msprof, npu; 1 个算子，1 次 host 调用"
    two = profile(4, 2, 2, "c" * 49)
    chip = "c" * 47 + "…"
    assert summary_line(two, "en") == f"a\\x1b: msprof, npu, {chip}; 4 ops of 2 ranks, 2 host calls"
    assert summary_line(two, "zh") == (
        f"a\\x1b: msprof, npu, {chip}; 4 个算子（2 张卡），2 次 host 调用"
    )


def test_missing_data_is_named_with_the_views_that_need_it() -> None:
    gaps = (Missing(file="f\n", what="w" * 301), Missing(file="g", what="x", needed_for=("a", "b")))
    found = profile(0, 0, 1, "", *gaps)
    assert missing_lines(found, "en") == [
        ("missing: ", f"f\\n: {'w' * 299}…"),
        ("missing: ", "g: x (needed for a, b)"),
    ]
    assert missing_lines(found, "zh")[1] == ("缺失：", "g: x（a, b 需要）")
    assert missing_lines(profile(0, 0), "en") == []


def test_files_that_were_not_read_are_not_called_missing() -> None:
    gaps = [Missing(file="f", what=f"{start}why") for start in ("not read: ", "cannot be read: ")]
    gaps += [Missing(file="f", what="1 number cannot be read: x")]
    found = profile(0, 0, 1, "", *gaps)
    assert missing_lines(found, "en") == [
        *[("not read: ", "f: why")] * 2,
        ("missing: ", "f: 1 number cannot be read: x"),
    ]
    assert missing_lines(found, "zh")[0] == ("未读取：", "f: why")


def test_every_text_exists_in_the_requested_language() -> None:
    assert texts_in("en") == {name: text.en for name, text in TEXTS.items()}
    assert texts_in("zh")["free"] == "空闲"
