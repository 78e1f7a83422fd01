"""`jumar weights show`, `jumar weights import` and `jumar weights export`."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from jumar.cli.options import OPTIONS, CheckpointOption, ImportOption, JsonFlag, SetOption
from jumar.ground.errors import UserError
from jumar.ground.text import print_aside, print_plain

app = App(
    name="weights",
    help="Show weights; import them from TensorFlow; export them to it or to Hugging Face.",
    group_parameters=OPTIONS,
)

_ImportOption = Annotated[
    ImportOption,
    Parameter(help="First import a module of your own that registers recipes or networks."),
]


@app.command
def show(file: Path, /, *, verify: bool = False, json_: JsonFlag = False) -> int:
    """List names, shapes and dtypes of the weights in a file.

    Reads no values without --verify, but checks that the data files of a checkpoint exist and have
    the length in its index; otherwise the exit code is 2 after listing the readable part.

    Parameters
    ----------
    file
        A run or one of its checkpoints, a .safetensors file, a frozen .pb graph, or the folder,
        .index file or prefix of a TensorFlow checkpoint.
    verify
        Read every value and verify checksums if the file has them.
    """
    from jumar.runs.weights_listing import list_weights

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
    partial: bool = False,
    raw: bool = False,
    import_: _ImportOption = (),
) -> int:
    """Import the weights of a TensorFlow file into the network of a recipe.

    Parameters
    ----------
    recipe
        Name of the recipe, or `bert`, which needs no recipe: only names are translated.
    file
        A checkpoint in format V2 (folder, .index file or prefix), or a frozen .pb graph.
    to
        A .safetensors file, or a new run directory for `jumar evaluate`, `jumar generate` and so
        on, and for `--set transfer.start_from=RUN`.
    set_
        Change a field of the recipe, for example `--set model.num_classes=1000`.
    partial
        Import the weights that fit; by default nothing is written unless all of them fit.
    raw
        Write the raw weights instead of the moving averages to a .safetensors file.
    """
    from jumar.runs.weights_import import ImportRequest
    from jumar.runs.weights_import import import_weights as import_tensorflow

    request = ImportRequest(
        recipe=recipe,
        file=file,
        to=to,
        assignments=set_,
        imports=import_,
        partial=partial,
        raw=raw,
    )
    print_plain("\n".join(import_tensorflow(request)))
    return 0


@app.command
def export(
    run: Path,
    /,
    *,
    to: Literal["tf1", "frozen", "huggingface"],
    like: Path | None = None,
    out: Path | None = None,
    checkpoint: CheckpointOption = "last",
    recipe: Annotated[str | None, Parameter(metavar="RECIPE")] = None,
    set_: SetOption = (),
    import_: _ImportOption = (),
) -> int:
    """Write the weights of a run for TensorFlow 1.15 or Hugging Face.

    Parameters
    ----------
    run
        The run directory, or a .safetensors file together with --recipe and --out.
    to
        tf1: a TensorFlow checkpoint in format V2, with the original model's variable names; frozen:
        a copy of the frozen graph --like, with these weights as its constants; huggingface: a
        folder for `from_pretrained` with weights, configuration, tokenizer, labels and answer
        settings of a BERT or NEZHA run.
    like
        A frozen .pb graph of the same network, written by the original's scripts.
    out
        Prefix of the files, by default `tf1/model.ckpt-STEP` in the run; for a frozen graph its
        file, by default `tf1/frozen-STEP.pb`; for Hugging Face the folder, by default
        `huggingface-STEP`.
    recipe
        The recipe that a .safetensors file belongs to.
    set_
        Change a field of the recipe; may be repeated.
    """
    if to == "huggingface":
        return _to_huggingface(run, out, checkpoint, recipe, set_, import_, like)
    from jumar.runs.weights_export import ExportRequest, export_weights

    if (to == "frozen") != (like is not None):
        raise UserError(
            "a frozen graph is written as a copy of one with the original's front end and outputs",
            where="--to" if like else "--like",
            todo="Use --to frozen --like GRAPH.pb, or --to tf1 for a checkpoint, which the "
            "original's freezing script turns into a graph.",
        )
    request = ExportRequest(
        source=run,
        out=out,
        like=like,
        which=checkpoint,
        recipe=recipe,
        assignments=set_,
        imports=import_,
    )
    print_plain("\n".join(export_weights(request)))
    return 0


def _to_huggingface(
    run: Path,
    out: Path | None,
    checkpoint: str,
    recipe: str | None,
    assignments: tuple[str, ...],
    imports: tuple[str, ...],
    like: Path | None,
) -> int:
    from jumar.runs.open_trained import TrainedRequest
    from jumar.runs.weights_huggingface import export_huggingface

    for option, value in (("--recipe", recipe), ("--like", like)):
        if value is not None:
            raise UserError("cannot be used with --to huggingface", where=option, todo="Omit it.")
    trained = TrainedRequest(
        run_dir=run, which=checkpoint, assignments=assignments, imports=imports, device="cpu"
    )
    print_plain("\n".join(export_huggingface(trained, out, print_aside)))
    return 0
