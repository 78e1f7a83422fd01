"""What is shown of views, and why some of them have no answer."""

from pathlib import Path

import polars as pl
import pytest

from jumar.ground.errors import UserError
from jumar.ground.text import Text
from jumar.profiling.columns import column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import (
    VIEWS,
    Answers,
    Impossible,
    Options,
    View,
    answers,
    find_view,
    require,
)
from tests.profiling.generated import profile_of

_TEXT = Text(en="Numbers", zh="数")


def _three(_: Profile, options: Options) -> pl.DataFrame:
    length = [3_000_000, 2_000_000, 1_500_000]
    return pl.DataFrame({"hidden": [1, 2, 3], "lasted_ns": length, "top": [options.top] * 3})


def _nothing(_: Profile, __: Options) -> pl.DataFrame:
    raise Impossible("a number", "count something")


def _view(name: str, *, ranking: bool = True) -> View:
    columns = (column("top", "前"), ms("lasted", "持续"), column("absent", "无"))
    compute = _nothing if name == "none" else _three
    return View(
        name=name, title=_TEXT, question=_TEXT, columns=columns, compute=compute, ranking=ranking
    )


def _asked(top: int) -> Answers:
    views = [_view("cut"), _view("none"), _view("whole", ranking=False)]
    return answers(profile_of(), views, Options(top=top))


def test_rankings_are_truncated_and_give_their_length() -> None:
    found = _asked(2)
    assert list(found.tables) == ["cut", "whole"]
    assert found.tables["cut"].to_dicts() == [
        {"top": 2, "lasted_ms": 3.0},
        {"top": 2, "lasted_ms": 2.0},
    ]
    assert found.tables["whole"]["lasted_ms"].to_list() == [3.0, 2.0, 1.5]
    assert found.row_counts == {"cut": 3}
    assert found.impossible == {"none": "needs a number; count something"}


@pytest.mark.parametrize("top", [0, 3, 4])
def test_short_ranking_is_complete(top: int) -> None:
    found = _asked(top)
    assert found.tables["cut"].height == 3
    assert found.row_counts == {}


def test_single_row_may_be_requested() -> None:
    assert _asked(1).tables["cut"]["lasted_ms"].to_list() == [3.0]


def test_defaults_are_ten_rows_in_english_with_built_in_chips() -> None:
    assert Options() == Options(top=10, chip=None, language="en")
    with pytest.raises(AttributeError):
        Options().top = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        Options(3, Path())  # pyright: ignore[reportCallIssue]
    with pytest.raises(AttributeError):
        _asked(1).row_counts = {}  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        Answers({}, {})  # pyright: ignore[reportCallIssue]


def test_listing_has_its_views_title_columns_and_question() -> None:
    view = _view("cut")
    table = view.make(profile_of(), Options())
    listing = view.listing(table)
    assert (listing.title, listing.columns, listing.note) == (_TEXT, view.columns, _TEXT)
    assert listing.table is table


def test_missing_data_is_reported_with_how_to_record_it() -> None:
    assert str(Impossible("a")) == "needs a"
    assert str(Impossible("a", "do b")) == "needs a; do b"
    rows = pl.DataFrame({"some": [None, 1], "none": [None, None]})
    assert require(rows, "numbers", "some") is rows
    assert require(rows, "numbers") is rows
    for table, columns, said in (
        (rows.clear(), ("some",), "needs numbers; count"),
        (rows, ("some", "none"), "needs numbers (column none); count"),
        (rows, ("absent",), "needs numbers (column absent); count"),
    ):
        with pytest.raises(Impossible) as told:
            require(table, "numbers", *columns, how="count")
        assert str(told.value) == said


def test_view_is_found_by_name_and_a_wrong_one_suggests_the_nearest() -> None:
    assert find_view("collectives") is VIEWS["collectives"]
    with pytest.raises(UserError) as told:
        find_view("colectives")
    assert str(told.value).startswith(
        "--view: unknown view 'colectives'\n  Did you mean 'collectives'? Known: aicpu, aicpu-time,"
    )
