"""`jumar recipes list` and `jumar recipes show`."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import App, Parameter

from jumar.cli.options import OPTIONS, ImportOption, JsonFlag, SetOption
from jumar.ground.errors import unknown_name
from jumar.ground.tables import aligned_lines
from jumar.settings import FieldRow, describe, to_json, value_text

app = App(name="recipes", help="List the recipes and their settings.", group_parameters=OPTIONS)

_ImportOption = Annotated[
    ImportOption,
    Parameter(help="First import a module of your own that registers recipes."),
]

_VALUE_WIDTH = 24
_MIN_MEANING_WIDTH = 40
"""If fewer columns remain beside path and value, a meaning gets its own lines."""

_SOURCE_WIDTH = 100
"""Line length of recipes' descriptions in their source."""


@app.command(name="list")
def list_(*, json_: JsonFlag = False, import_: _ImportOption = ()) -> int:
    """List the recipes."""
    from jumar.recipes.registry import import_modules, list_recipes

    import_modules(import_)
    rows = list_recipes()
    if json_:
        print(json.dumps([{"name": row.name, "summary": row.summary} for row in rows], indent=2))
        return 0
    for line in aligned_lines([(row.name, row.summary) for row in rows]):
        print(line)
    return 0


@app.command
def show(
    name: str,
    /,
    *,
    section: Annotated[str, Parameter(metavar="NAME")] = "",
    brief: bool = False,
    set_: SetOption = (),
    json_: JsonFlag = False,
    import_: _ImportOption = (),
) -> int:
    """Show every field of a recipe with its value, meaning and unit.

    Parameters
    ----------
    name
        Name of the recipe.
    section
        Show only the fields of this section, for example `--section data`.
    brief
        Show only the path and the value of each field.
    set_
        Change a field first, for example `--set data.batch_size=64`; may be repeated.
    """
    from jumar.recipes.parameter_count import parameter_text
    from jumar.recipes.registry import create_recipe, import_modules, recipe_text

    import_modules(import_)
    recipe = create_recipe(name, set_)
    rows = describe(recipe)
    sections = {row.path.partition(".")[0] for row in rows}
    if section and section not in sections:
        raise unknown_name("section", section, sections, where="--section")
    if json_:
        settings = to_json(recipe)
        settings = {section: settings[section]} if section else settings
        print(json.dumps({"recipe": name, "settings": settings}, indent=2))
        return 0
    rows = [row for row in rows if not section or row.path.partition(".")[0] == section]
    if brief:
        for line in aligned_lines([(row.path, value_text(row.value)) for row in rows]):
            print(line)
        return 0
    columns = shutil.get_terminal_size(fallback=(0, 0)).columns
    if not section:
        print(_wrapped(recipe_text(name), columns), end="\n\n")
        print(_wrapped(f"Parameters: {parameter_text(recipe)}.", columns), end="\n\n")
    for line in _field_lines(rows, columns):
        print(line)
    return 0


def _field_lines(rows: Sequence[FieldRow], columns: int) -> Iterator[str]:
    """Yield a line for each field, or several if `columns` are too few; 0 means no limit."""
    path_width = max(len(row.path) for row in rows)
    value_width = min(_VALUE_WIDTH, max(len(value_text(row.value)) for row in rows))
    indent = path_width + value_width + 4
    for row in rows:
        unit = f" [{row.unit}]" if row.unit else ""
        allowed_text = f" ({row.allowed})" if row.allowed else ""
        meaning = f"{row.meaning}{unit}{allowed_text}"
        head = f"{row.path:<{path_width}}  {value_text(row.value):<{value_width}}"
        if not columns:
            yield f"{head}  {meaning}"
        elif columns - indent < _MIN_MEANING_WIDTH or len(head) + 2 > indent:
            yield head.rstrip()
            yield _filled(meaning, columns, " " * 4, first=" " * 4)
        else:
            yield _filled(meaning, columns, " " * indent, first=f"{head}  ")


def _wrapped(text: str, columns: int) -> str:
    """Rewrap the paragraphs and list items of a recipe's description to a number of columns."""
    if not columns or columns >= _SOURCE_WIDTH:
        return text
    paragraphs: list[str] = []
    continues = False
    for line in text.splitlines():
        if continues and line.strip() and not line.startswith("- "):
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line)
        continues = len(line) > 0.8 * _SOURCE_WIDTH
    return "\n".join(
        _filled(paragraph, columns, "  " if paragraph.startswith("- ") else "", first="")
        for paragraph in paragraphs
    )


def _filled(text: str, columns: int, indent: str, *, first: str) -> str:
    return textwrap.fill(
        text,
        columns,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
