"""Patterns over names of weights."""

import pytest

from jumar.ground.errors import UserError
from jumar.training.name_patterns import check_patterns, matches

NAMES = ["stem.conv.weight", "stem.conv.bias", "head.weight"]


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("stem.conv.weight", "stem.conv.weight", True),
        ("stem.conv.weight", "stem", True),
        ("stem.conv.weight", "stem.conv", True),
        ("stem.conv.weight", "*.weight", True),
        ("stem.conv.weight", "stem.co??.*", True),
        ("stem.conv.weight", "stem.con", False),
        ("stem.conv.weight", "conv", False),
        ("stem2.weight", "stem", False),
        ("Stem.weight", "stem", False),
        ("Stem.weight", "s*", False),
    ],
)
def test_pattern_is_a_name_a_parent_or_has_wildcards(name: str, pattern: str, fits: bool) -> None:
    assert matches(name, pattern) is fits


def test_pattern_that_matches_nothing_is_refused_with_the_nearest_part() -> None:
    check_patterns(["stem", "*.bias", "head.weight"], NAMES, where="transfer.freeze")
    check_patterns([], NAMES, where="transfer.freeze")
    for pattern, hint in (
        ("stem.cov.*", "Did you mean 'stem.conv'? "),
        ("haed", "Did you mean 'head'? "),
        ("qqqqq", ""),
    ):
        with pytest.raises(UserError) as refused:
            check_patterns(["stem", pattern], NAMES, where="transfer.freeze")
        assert str(refused.value) == (
            f"transfer.freeze: the pattern '{pattern}' matches no parameter of the network\n"
            f"  {hint}Its parts: stem, head."
        )


@pytest.mark.parametrize(("parts", "more"), [(12, ""), (13, ", ...")])
def test_at_most_twelve_parts_are_named(parts: int, more: str) -> None:
    names = [f"{letter}.weight" for letter in "abcdefghijklm"[:parts]]
    with pytest.raises(UserError) as refused:
        check_patterns(["qqqqq"], names, where="x")
    assert refused.value.todo == f"Its parts: a, b, c, d, e, f, g, h, i, j, k, l{more}."
