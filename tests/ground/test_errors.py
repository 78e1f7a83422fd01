import pickle

import pytest

from jumar.ground.errors import UserError, did_you_mean, nearest, unknown_name


def test_error_says_where_what_and_what_to_do() -> None:
    error = UserError("is empty", where="data/cat", todo="Put images into it.")
    assert str(error) == "data/cat: is empty\n  Put images into it."


def test_error_survives_pickling_between_processes() -> None:
    error = pickle.loads(pickle.dumps(UserError("a", where="b", todo="c")))
    assert (error.what, error.where, error.todo) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("name", "found"), [("alexnt", "alexnet"), ("ALEXNET", "alexnet"), ("zzz", "")]
)
def test_nearest_name_is_suggested_only_when_it_is_near(name: str, found: str) -> None:
    assert nearest(name, ["alexnet", "resnext50"]) == found


def test_suggestion_is_a_question_or_nothing() -> None:
    assert did_you_mean("alexnt", ["alexnet", "resnext50"]) == "Did you mean 'alexnet'? "
    assert did_you_mean("zzz", ["alexnet"]) == ""


def test_known_name_is_listed_once() -> None:
    assert "Known: loss, top1." in str(unknown_name("score", "psnr", ["loss", "top1", "loss"]))


def test_unknown_name_error_lists_all_known_ones() -> None:
    text = str(unknown_name("recipe", "resnet50", ["alexnet", "resnext50"]))
    assert "Did you mean 'resnext50'?" in text
    assert "alexnet, resnext50" in text
