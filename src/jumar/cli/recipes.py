"""`jumar recipes list` and `jumar recipes show`."""

import json

from cyclopts import App

from jumar.cli.options import OPTIONS, ImportOption, JsonFlag, SetOption

app = App(
    name="recipes", help="What can be trained, and with what settings.", group_parameters=OPTIONS
)


@app.command(name="list")
def list_(*, json_: JsonFlag = False, import_: ImportOption = ()) -> int:
    """List the recipes.

    Parameters
    ----------
    json_
        Print JSON.
    import_
        First import a module of your own that registers recipes.
    """
    from jumar.recipes.registry import import_modules, list_recipes

    import_modules(import_)
    rows = list_recipes()
    if json_:
        print(json.dumps([{"name": row.name, "summary": row.summary} for row in rows], indent=2))
        return 0
    width = max(len(row.name) for row in rows)
    for row in rows:
        print(f"{row.name:<{width}}  {row.summary}")
    return 0


@app.command
def show(
    name: str, /, *, set_: SetOption = (), json_: JsonFlag = False, import_: ImportOption = ()
) -> int:
    """Show every field of a recipe with its value, meaning and unit.

    Parameters
    ----------
    name
        Name of the recipe.
    set_
        Change a field first, for example `--set data.batch_size=64`; may be repeated.
    json_
        Print JSON.
    import_
        First import a module of your own that registers recipes.
    """
    from jumar.recipes.registry import create_recipe, import_modules, recipe_text
    from jumar.settings import describe, override, to_json, value_text

    import_modules(import_)
    recipe = override(create_recipe(name), set_)
    if json_:
        print(json.dumps({"recipe": name, "settings": to_json(recipe)}, indent=2))
        return 0
    print(recipe_text(name), end="\n\n")
    rows = describe(recipe)
    path_width = max(len(row.path) for row in rows)
    value_width = min(24, max(len(value_text(row.value)) for row in rows))
    for row in rows:
        unit = f" [{row.unit}]" if row.unit else ""
        allowed = f" ({row.allowed})" if row.allowed else ""
        print(
            f"{row.path:<{path_width}}  {value_text(row.value):<{value_width}}  "
            f"{row.meaning}{unit}{allowed}"
        )
    return 0
