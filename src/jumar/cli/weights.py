"""`jumar weights show`, `jumar weights import` and `jumar weights export`."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from jumar.cli.recipes import JsonOption
from jumar.cli.train import ImportOption, SetOption
from jumar.plain_text import print_plain

app = App(name="weights", help="Show weights; bring them in from TensorFlow, and out to it.")


@app.command
def show(
    file: Path,
    /,
    *,
    verify: Annotated[bool, Parameter(negative=())] = False,
    json_: JsonOption = False,
) -> int:
    """List names, shapes and element types of the weights in a file.

    No value is read without --verify; but the data files of a checkpoint must be there, and as
    long as its index needs them. Leaves with 2 where they are not, after what can be listed.

    Parameters
    ----------
    file
        A run or one of its checkpoints, a .safetensors file, a frozen .pb graph, or a TensorFlow
        checkpoint: its folder, its .index file or what comes before .index.
    verify
        Read every value, and compare its checksum where the file has one.
    json_
        Print JSON.
    """
    from jumar.recipes.weights_listing import list_weights

    listing = list_weights(file, verify=verify)
    if json_:
        tensors = [
            {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}
            for tensor in listing.tensors
        ]
        totals = {"numbers": listing.elements, "bytes": listing.bytes}
        print(json.dumps({"file": listing.source, **totals, "tensors": tensors}, indent=2))
    else:
        print_plain("\n".join(listing.lines()))
    if listing.damage is not None:
        raise listing.damage
    return 0


@app.command(name="import")
def import_weights(
    recipe: str,
    file: Path,
    /,
    *,
    to: Path,
    set_: SetOption = (),
    partial: Annotated[bool, Parameter(negative=())] = False,
    raw: Annotated[bool, Parameter(negative=())] = False,
    import_: ImportOption = (),
) -> int:
    """Bring the weights of a TensorFlow file into the network of a recipe.

    Parameters
    ----------
    recipe
        Name of the recipe, or `bert`, whose names are translated without a network.
    file
        A checkpoint (format V2) by any of its names, or a frozen .pb graph.
    to
        A .safetensors file, or a new run directory for `jumar evaluate`, `jumar generate` and
        the like, and for `--set transfer.start_from=`.
    set_
        Change a field of the recipe, for instance `--set model.num_classes=1000`.
    partial
        Take over what fits; by default nothing is written unless everything does.
    raw
        Into a .safetensors file, write the weights as trained where the file has averages.
    import_
        Import a module of your own first.
    """
    from jumar.recipes.weights_import import ImportRequest
    from jumar.recipes.weights_import import import_weights as bring_in

    request = ImportRequest(
        recipe=recipe,
        file=file,
        to=to,
        assignments=set_,
        imports=import_,
        partial=partial,
        raw=raw,
    )
    print_plain("\n".join(bring_in(request)))
    return 0


@app.command
def export(
    run: Path,
    /,
    *,
    to: Literal["tf1"],
    out: Path | None = None,
    checkpoint: str = "last",
    recipe: str | None = None,
    set_: SetOption = (),
    import_: ImportOption = (),
) -> int:
    """Write the weights of a run as a checkpoint that TensorFlow 1.15 restores.

    Parameters
    ----------
    run
        The run directory; or a .safetensors file, with --recipe and --out.
    to
        tf1: a TensorFlow checkpoint in format V2, with the original's names.
    out
        What the names of the files begin with; by default `tf1/model.ckpt-STEP` in the run.
    checkpoint
        last, best, or a number of steps.
    recipe
        What a .safetensors file belongs to.
    set_
        Change a field of the recipe.
    import_
        Import a module of your own first.
    """
    from jumar.recipes.weights_export import ExportRequest, export_weights

    assert to == "tf1"
    request = ExportRequest(
        source=run,
        out=out,
        which=checkpoint,
        recipe=recipe,
        assignments=set_,
        imports=import_,
    )
    print_plain("\n".join(export_weights(request)))
    return 0
