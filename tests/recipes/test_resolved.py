"""The line that names a run's data."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jumar.recipes.registry import create_recipe
from jumar.recipes.resolved import data_line


@pytest.mark.parametrize(
    ("recipe", "changes", "line"),
    [
        ("alexnet", (), "digits (2 samples) · evaluation: digits (1 sample)"),
        (
            "alexnet",
            ("data.path=a", "data.eval_path=b"),
            "a (2 samples) · evaluation: b (1 sample)",
        ),
        ("vqvae-prior", ("vqvae.run=r",), "as in r (2 samples) · evaluation: as in r (1 sample)"),
        (
            "vqvae-prior",
            ("vqvae.run=r", "data.path=p"),
            "p (2 samples) · evaluation: p (1 sample)",
        ),
    ],
)
def test_data_of_both_parts_is_named(recipe: str, changes: tuple[str, ...], line: str) -> None:
    task = cast(Any, SimpleNamespace(train_data="ab", eval_data="c"))
    assert data_line(create_recipe(recipe, changes), task) == f"data: {line}"


def test_without_evaluation_the_line_says_so() -> None:
    task = cast(Any, SimpleNamespace(train_data="ab", eval_data=None))
    recipe = create_recipe("alexnet", ("data.eval_path=none",))
    assert data_line(recipe, task) == "data: digits (2 samples) · evaluation: none"
