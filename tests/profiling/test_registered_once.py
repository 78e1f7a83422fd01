"""What one file registers, a view or a finding, is on terminal and page, in JSON and CSV."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from jumar.ground.text import Language, Text
from jumar.profiling import read
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding
from jumar.profiling.columns import RANK, column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views import VIEWS, Impossible, Options, View
from tests.cli.in_process import here

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def count_ops(profile: Profile, _: Options) -> pl.DataFrame:
    """Ops of each rank, with a number that JSON does not have, and a column that is not shown."""
    return profile.ops.group_by("rank").agg(
        pl.len().alias("number"),
        (pl.col("duration_ns").sum() * 0 + 1_234_500).alias("lasted_ns"),
        pl.lit(float("inf")).alias("endless"),
        pl.lit("kept back").alias("hidden"),
    )


def first_ops(case: Case) -> Iterator[Claim]:
    """Half a step."""
    length = (pl.col("end_ns") - pl.col("start_ns")) // 2
    half = case.step_spans.with_columns((pl.col("start_ns") + length).alias("end_ns"))
    yield Claim(
        values={"word": Text(en="half", zh="一半")},
        spans=half,
        evidence=(Text(en="seen in a test", zh="测试中可见"),),
    )


@pytest.fixture
def registered() -> Iterator[None]:
    """A view and a finding, gone again after the test."""
    VIEWS.add(
        View(
            name="own-view",
            title=Text(en="A view of one's own", zh="自定义视图"),
            question=Text(en="How many are there?", zh="有多少个？"),
            columns=(
                RANK,
                column("number", "个数"),
                ms("lasted", "持续"),
                column("endless", "无穷"),
            ),
            compute=count_ops,
        )
    )
    FINDINGS.add(
        Finding(
            name="own-finding",
            what=Text(en="A finding takes {word} a step", zh="某问题占用{word}迭代"),
            change=Text(en="Change {word} of it.", zh="改掉{word}。"),
            search=first_ops,
            order=-1,
            setting="data.workers",
            view="own-view",
        )
    )
    yield
    del VIEWS.registered["own-view"], FINDINGS.registered["own-finding"]


@pytest.fixture
def sample(shared: Path) -> Path:
    return shared / "data/msprof/torch_npu_level1_2rank/rank0_ascend_pt"


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_registered_view_is_shown_everywhere(sample: Path, tmp_path: Path, lang: Language) -> None:
    ask = ("profile", "show", sample, "--view", "own-view", "--lang", lang)
    written = here(*ask, "--csv", "tables", "--page", "page.html", cwd=tmp_path).out
    page = (tmp_path / "page.html").read_text("utf-8")
    title = {"en": "A view of one's own", "zh": "自定义视图"}[lang]
    heads = {"en": ["rank", "number", "lasted_ms"], "zh": ["卡号", "个数", "持续 (ms)"]}[lang]
    assert title in written
    assert re.search(r"\s+".join(map(re.escape, heads)), written)
    assert re.search(r"0 +191 +1\.234", written)
    assert {"en": "How many are there?", "zh": "有多少个？"}[lang] in page
    assert title.replace("'", "&#39;") in page
    assert '>191</td><td class="number">1.234</td>' in page
    rows = json.loads(here(*ask, "--json", cwd=tmp_path).out)["views"]["own-view"]
    assert rows == [{"rank": 0, "number": 191, "lasted_ms": 1.2345, "endless": None}]
    table = (tmp_path / "tables" / "own-view.csv").read_text().splitlines()
    assert table == ["rank,number,lasted_ms,endless", "0,191,1.2345,inf"]
    assert "kept back" not in written + page
    assert "own-view" in here("profile", "views", "--lang", lang, cwd=tmp_path).out


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_registered_finding_is_shown_everywhere(
    sample: Path, tmp_path: Path, lang: Language
) -> None:
    ask = ("profile", "show", sample, "--view", "todo", "--lang", lang)
    written = here(*ask, "--csv", "tables", "--page", "page.html", cwd=tmp_path).out
    texts = {
        "en": ("A finding takes half a step", "Change half of it.", "seen in a test"),
        "zh": ("某问题占用一半迭代", "改掉一半。", "测试中可见"),
    }
    rows = json.loads(here(*ask, "--json", cwd=tmp_path).out)["views"]["todo"]
    (row,) = [row for row in rows if row["key"] == "own-finding"]
    assert (row["what"], row["change"], *row["evidence"]) == texts[lang]
    assert row["share_%"] == 50.0
    page = (tmp_path / "page.html").read_text("utf-8")
    table = (tmp_path / "tables" / "todo.csv").read_text("utf-8")
    for text in texts[lang]:
        assert text in written
        assert text in page
        assert text in table
    assert "(--set data.workers=...)" in written
    assert f'<html lang="{"zh-CN" if lang == "zh" else "en"}">' in page


def test_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        VIEWS.add(VIEWS["ops"])


def test_every_text_has_both_languages() -> None:
    texts = [text for view in VIEWS.values() for text in (view.title, view.question)]
    texts += [text for one in FINDINGS.values() for text in (one.what, one.change)]
    for text in texts:
        assert text.en
        assert CHINESE.search(re.sub(r"\{\w+\}", "字" if "{" in text.en else "", text.zh))
        assert not CHINESE.search(text.en)
        assert re.findall(r"\{\w+\}", text.en) or not re.findall(r"\{\w+\}", text.zh)
    assert {one.view for one in FINDINGS.values()} <= set(VIEWS)


SAMPLES = ("torch_npu_level1_2rank", "msprof_csv", "mindspore_r1_2021", "torch_cuda_pair")
INTERMEDIATE = re.compile(r"_ns$|_bytes$|^(weighted|turn|known_.*|same|large_packet_ratio)$")


@pytest.mark.parametrize("folder", SAMPLES)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_declared_answer_is_reachable(shared: Path, folder: str, lang: Language) -> None:
    profile = read(shared / "data/msprof" / folder)
    answered = 0
    for view in VIEWS.values():
        try:
            table = view.make(profile, Options(language=lang))
        except Impossible:
            continue
        answered += 1
        declared = [one.name for one in view.columns]
        assert [name for name in declared if name in table.columns] == table.columns
        assert table.width > 1
    assert answered > 5
