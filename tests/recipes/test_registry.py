"""Recipes of a user's module next to ours."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.recipes import registry
from jumar.recipes.registry import (
    create_recipe,
    import_modules,
    list_recipes,
    recipe_text,
    register,
)

RECIPE = '''"""The module's text."""

from dataclasses import replace

from jumar.recipes.registry import create_recipe, register


@register("{name}")
def mine():
    """One line.

    And more.
    """
    return replace(create_recipe("alexnet-demo"), seed={seed})
'''
Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module into the present directory; what it registers is forgotten afterwards."""
    list_recipes()  # ours are loaded once, and must not be forgotten
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(registry, "_RECIPES", dict(registry._RECIPES))
    written: list[str] = []

    def file(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        written.append(name)
        return name

    yield file
    for name in written:
        sys.modules.pop(name, None)


def test_custom_recipe_is_listed_with_the_built_in_ones(write: Write) -> None:
    import_modules([write("my_first", RECIPE.format(name="my-first", seed=7))])
    assert create_recipe("my-first").seed == 7
    row = next(row for row in list_recipes() if row.name == "my-first")
    assert (row.summary, row.module) == ("One line.", "my_first")
    assert recipe_text("my-first") == "The module's text.\n\nOne line.\n\nAnd more."


def test_built_in_name_cannot_be_registered_again(write: Write) -> None:
    name = write("my_alexnet", RECIPE.format(name="alexnet", seed=7))
    with pytest.raises(UserError, match="'alexnet' already exists, in jumar") as found:
        import_modules([name])
    assert found.value.where == "my_alexnet"


def test_module_may_be_imported_again(write: Write) -> None:
    name = write("my_twice", RECIPE.format(name="my-twice", seed=1))
    import_modules([name, name])
    sys.modules.pop(name)
    import_modules([name])
    assert create_recipe("my-twice").seed == 1


def test_settings_out_of_range_are_refused_with_the_recipes_name(write: Write) -> None:
    import_modules([write("my_wrong", RECIPE.format(name="my-wrong", seed=-1))])
    with pytest.raises(UserError, match="seed") as found:
        create_recipe("my-wrong")
    assert "my-wrong" in str(found.value)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("import no_such_thing", "there is no module 'no_such_thing'", "no_such_thing.py"),
        ("x = 1\ny = z", "NameError: name 'z' is not defined", "my_broken.py, line 2"),
        ("def f(:", "SyntaxError", ""),
        ("raise SystemError('why')", "SystemError: why", "my_broken.py, line 1"),
    ],
)
def test_unimportable_module_is_an_error_with_its_location(
    write: Write, text: str, message: str, hint: str
) -> None:
    name = write("my_broken", text)
    with pytest.raises(UserError, match=message) as found:
        import_modules([name])
    assert found.value.where == "--import my_broken"
    assert hint in found.value.todo


def test_missing_module_error_says_where_it_was_searched(write: Write) -> None:
    write("my_file", "x = 1")
    for name in ("my_flie", "my_file.py"):
        with pytest.raises(UserError, match=f"there is no module '{name}'") as found:
            import_modules([name])
        assert "without .py" in found.value.todo


def test_unknown_recipe_suggests_the_nearest_and_lists_all(write: Write) -> None:
    import_modules([write("my_other", RECIPE.format(name="my-other", seed=1))])
    with pytest.raises(UserError, match="unknown recipe 'my-othre'") as found:
        create_recipe("my-othre")
    assert found.value.todo.startswith("Did you mean 'my-other'? Known: alexnet")


def test_two_modules_cannot_share_a_name(write: Write) -> None:
    import_modules([write("my_one", RECIPE.format(name="my-one", seed=1))])
    with pytest.raises(UserError, match="'my-one' already exists, in my_one"):
        register("my-one")(lambda: create_recipe("alexnet"))
