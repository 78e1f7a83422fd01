"""`jumar export`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import CheckpointOption, EmaOption, RunArgument, RunImportOption, SetOption
from jumar.ground.errors import UserError
from jumar.ground.text import print_aside, print_plain


def export(
    run: RunArgument,
    /,
    *,
    to: Path,
    part: Annotated[str, Parameter(metavar="PART")] = "",
    fix: Annotated[tuple[str, ...], Parameter(metavar="AXIS=LENGTH")] = (),
    checkpoint: CheckpointOption = "last",
    ema: EmaOption = True,
    made_up: bool = False,
    soc_version: Annotated[str, Parameter(metavar="CHIP")] = "",
    overwrite: bool = False,
    set_: SetOption = (),
    import_: RunImportOption = (),
) -> int:
    """Write the network of a run for other programs, checked against PyTorch.

    Parameters
    ----------
    to
        FILE.onnx: a graph in float32 for onnxruntime and other programs (needs jumar[onnx]), with a
        description in FILE.onnx.json, a tokenizer in FILE.onnx.tokenizer, and the command that
        compiles it to an Ascend .om in FILE.atc.sh; FILE.pt2: a graph for torch.export.load;
        FILE.safetensors: the weights; tf: a TensorFlow checkpoint in the run; FOLDER: BERT or NEZHA
        for Hugging Face.
    part
        Part of the network: encoder or decoder of a VQ-VAE, generator of BigGAN.
    fix
        Fix the length of an axis in the file, for example `--fix height=640`; may be repeated.
    made_up
        Check the file on made-up inputs, without opening the run's data.
    soc_version
        The chip in FILE.atc.sh, for example Ascend910B1.
    overwrite
        Replace existing files.
    set_
        Change a field, for example `--set data.max_seq_length=64`.
    """
    from jumar.runs.exporting.export import ExportRequest, export_run

    request = ExportRequest(
        run_dir=run,
        to=to,
        part=part,
        fixed=dict(map(_length, fix)),
        which=checkpoint,
        use_ema=ema,
        made_up=made_up,
        soc_version=soc_version,
        overwrite=overwrite,
        assignments=set_,
        imports=import_,
        device="cpu",
    )
    print_plain("\n".join(export_run(request, print_aside)))
    return 0


def _length(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise UserError(
            f"'{text}' is not the length of an axis",
            where="--fix",
            todo="For instance: height=640",
        )
    return name, int(number)
