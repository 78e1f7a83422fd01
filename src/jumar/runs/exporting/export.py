"""Export a run's network: `jumar export`."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, written_beside
from jumar.ground.paths import is_folder
from jumar.ground.text import counted, size_text
from jumar.recipes.bert import PretrainingRecipe
from jumar.recipes.bert_tasks import BertTaskRecipe
from jumar.recipes.recipe import Recipe
from jumar.recipes.stored import stored_recipe
from jumar.recipes.trained import Trained
from jumar.runs.exporting.atc import AtcScript, atc_script, has_mixlist
from jumar.runs.exporting.checking import Runner, batches_to_check, compare
from jumar.runs.exporting.families import check_part, parts_of
from jumar.runs.exporting.network import Exportable
from jumar.runs.exporting.onnx_file import OPSET, onnx_content, onnx_runner
from jumar.runs.exporting.program_file import program_content, program_runner
from jumar.runs.exporting.real_inputs import real_inputs
from jumar.runs.exporting.targets import (
    Kind,
    facts_path,
    kind_of,
    meant_file,
    mixlist_path,
    refuse_existing,
    script_path,
    tokenizer_path,
)
from jumar.runs.exporting.tracing import traced
from jumar.runs.open_trained import TrainedRequest, open_trained, placed_recipe
from jumar.runs.weights_export import ExportRequest as WeightsRequest
from jumar.runs.weights_export import export_weights
from jumar.runs.weights_huggingface import export_huggingface
from jumar.training.run_directory import RunDirectory

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ExportRequest(TrainedRequest):
    """The options of `jumar export`, besides the weights.

    Attributes:
        to: Path or kind of the output; see `kind_of`.
        part: Part of the network, if it has several.
        fixed: Fixed lengths of axes, by name.
        made_up: Check on made-up inputs without opening the run's data.
        soc_version: The chip in the script for atc.
        overwrite: Replace existing files.
    """

    to: Path
    part: str = ""
    fixed: Mapping[str, int] = field(default_factory=dict[str, int])
    made_up: bool = False
    soc_version: str = ""
    overwrite: bool = False


def export_run(request: ExportRequest, say: Say = lambda _: None) -> list[str]:
    """Write a run's network, checked against PyTorch if it is a graph.

    Args:
        request: The run and the output.
        say: Prints a line about a vocabulary that moved.

    Returns:
        The lines of a summary.

    Raises:
        UserError: There is no such run or checkpoint, its network cannot be exported in this form,
            the file does not compute the same, or the path exists or cannot be written.
    """
    kind = kind_of(request.to, request.run_dir)
    if kind == "tf":
        _refuse(request, "--to tf", "part", "fixed", "made_up", "soc_version", "overwrite")
        return _tensorflow(request)
    if kind == "folder":
        _refuse(request, "a folder", "part", "fixed", "made_up", "soc_version", "overwrite")
        return _folder(request, say)
    if kind == "safetensors":
        _refuse(request, "weights alone", "part", "fixed", "made_up", "soc_version")
        return _weights(request)
    return _graph(request, kind, say)


def open_exportable(
    request: ExportRequest, say: Say = lambda _: None
) -> tuple[Trained, Recipe, Exportable]:
    """Return a run's network as it is exported, and its recipe with the current data paths.

    Raises:
        UserError: See `export_run`.
    """
    name, _, stored = stored_recipe(RunDirectory(request.run_dir), request.imports)
    part = check_part(stored, name, request.part)
    trained = _open(request)
    recipe = placed_recipe(trained, request, say)
    placed = replace(trained, recipe=recipe)
    return placed, recipe, parts_of(recipe)[part](placed).fixed(request.fixed)


@dataclass(frozen=True, kw_only=True)
class _Graph:
    """A graph before it is written.

    Attributes:
        content: The bytes of its file.
        run: Runs the graph.
        runner: Name of the runtime.
        script: The script for atc; None if the graph is not ONNX.
    """

    content: bytes
    run: Runner
    runner: str
    script: AtcScript | None = None


def _graph(request: ExportRequest, kind: Kind, say: Say) -> list[str]:
    """Check a graph and write the `.onnx` or `.pt2` file with its companion files."""
    if kind == "onnx":
        for package in ("onnx", "onnxscript", "onnxruntime"):  # fails before anything is loaded
            import_module(package)
    elif request.soc_version:
        raise UserError("is for --to FILE.onnx", where="--soc-version", todo="Omit it.")
    to = request.to
    if not request.overwrite:
        refuse_existing([to, facts_path(to)])
    trained, recipe, exportable = open_exportable(request, say)
    paths = [to, facts_path(to)]
    if kind == "onnx":
        paths.append(script_path(to))
        if has_mixlist(recipe.precision):
            paths.append(mixlist_path(to))
    folders = [tokenizer_path(to)] if exportable.files else []
    if not request.overwrite:
        refuse_existing([*paths, *folders])
    with ExitStack() as files:
        temporary_paths = {path: files.enter_context(written_beside(path)) for path in paths}
        for temporary in temporary_paths.values():
            temporary.touch()  # fails early if it cannot be written
        facts = _facts(trained, recipe, exportable, kind)
        real, source = _inputs(request, exportable, recipe)
        graph = (
            _onnx(request, exportable, recipe, facts) if kind == "onnx" else _pt2(exportable, facts)
        )
        comparisons = compare(exportable, batches_to_check(exportable, real), graph.run)
        temporary_paths[to].write_bytes(graph.content)
        outputs = [vars(comparison) for comparison in comparisons]
        check_facts = {"with": graph.runner, "inputs": source, "outputs": outputs}
        _write(temporary_paths[facts_path(to)], {**facts, "checked": check_facts})
        if graph.script is not None:
            temporary_paths[script_path(to)].write_text(graph.script.text, encoding="utf-8")
            if graph.script.mixlist:
                temporary_paths[mixlist_path(to)].write_text(graph.script.mixlist, encoding="utf-8")
        for folder in folders:
            temporary = files.enter_context(folder_beside(folder, replacing=True))
            for name, text in exportable.files.items():
                (temporary / name).write_text(text, encoding="utf-8")
    release = torch.__version__.partition("+")[0]
    return [
        *_head(trained, exportable, f"ONNX, opset {OPSET}" if kind == "onnx" else "torch.export"),
        f"checked with {graph.runner} against PyTorch {release} on {source}:",
        *map(str, comparisons),
        *_script_lines(graph.script, to, request.soc_version),
        _written([*paths, *folders], to),
    ]


def _onnx(
    request: ExportRequest, exportable: Exportable, recipe: Recipe, facts: Mapping[str, Any]
) -> _Graph:
    content, ops = onnx_content(exportable, traced(exportable), facts)
    script = atc_script(
        exportable,
        stem=request.to.stem,
        ops=ops,
        precision=recipe.precision,
        soc_version=request.soc_version,
    )
    runner = f"onnxruntime {version('onnxruntime')}"
    return _Graph(content=content, run=onnx_runner(content), runner=runner, script=script)


def _pt2(exportable: Exportable, facts: Mapping[str, Any]) -> _Graph:
    content = program_content(traced(exportable), facts)
    runner = "torch.export.load in another process"
    return _Graph(content=content, run=program_runner(content), runner=runner)


def _script_lines(script: AtcScript | None, to: Path, soc_version: str) -> list[str]:
    if script is None:
        return []
    chip = "" if soc_version else "SOC_VERSION=... "
    return [
        f"for an Ascend .om, not tested here: {chip}sh {script_path(to)}",
        *[f"  {line}" for line in script.command.splitlines()],
        *[f"  left out: {setting}" for setting in script.left_out],
    ]


def _inputs(
    request: ExportRequest, exportable: Exportable, recipe: Recipe
) -> tuple[tuple[Tensor, ...], str]:
    """Return inputs from the run's data, none if they are to be made up, and their origin."""
    if exportable.entrance is None or request.made_up:
        return (), exportable.drawn
    try:
        return real_inputs(exportable, recipe), "inputs of the run's data"
    except (UserError, ModuleNotFoundError) as error:
        reason = str(error).splitlines()[0]
        return (), f"made-up inputs, as the run's data cannot be used ({reason})"


def _open(request: TrainedRequest) -> Trained:
    """Open the network on the CPU, in float32 regardless of the run's precision."""
    trained = open_trained(request)
    trained.policy.close()
    for module in trained.model.modules():
        vars(module).pop("forward", None)  # the wrapper that keeps a layer in float32
    return trained


def _facts(trained: Trained, recipe: Recipe, exportable: Exportable, kind: str) -> dict[str, Any]:
    precision = recipe.precision
    return {
        "recipe": trained.name,
        "part": exportable.part or "network",
        "step": trained.checkpoint.step,
        "weights": "averages" if trained.weights == "ema" else "as trained",
        "inputs": [port.described() for port in exportable.inputs],
        "outputs": [port.described() for port in exportable.outputs],
        "axes": {name: axis.described() for name, axis in exportable.axes.items()},
        **exportable.facts,
        "trained_in": {
            "precision_mode": precision.mode,
            "modify_mixlist": precision.modify_mixlist,
        },
        "made_with": {
            "torch": torch.__version__,
            **({"onnx": version("onnx"), "opset": OPSET} if kind == "onnx" else {}),
            "processor": platform.machine(),
        },
    }


def _head(trained: Trained, exportable: Exportable, form: str) -> list[str]:
    part = f", {exportable.part}" if exportable.part else ""
    averages = ", averages of the weights" if trained.weights == "ema" else ""
    ports = [("input", port) for port in exportable.inputs]
    ports += [("output", port) for port in exportable.outputs]
    return [
        f"{trained.name}{part}, step {trained.checkpoint.step}{averages}: {form}",
        *[
            f"  {direction} {port.name} {' x '.join(map(str, port.shape))} "
            f"{str(port.dtype).removeprefix('torch.')}: {port.meaning}"
            for direction, port in ports
        ],
    ]


def _weights(request: ExportRequest) -> list[str]:
    """Write all weights as one `.safetensors` file, with their origin as metadata."""
    if not request.overwrite:
        refuse_existing([request.to])
    trained = _open(request)
    weights = {name: tensor.contiguous() for name, tensor in trained.model.state_dict().items()}
    precision = trained.recipe.precision.mode
    metadata = {
        "format": "pt",
        "recipe": trained.name,
        "step": str(trained.checkpoint.step),
        "weights": "averages" if trained.weights == "ema" else "as trained",
        "precision_mode": precision,
        # A label may contain a lone surrogate, which UTF-8 cannot encode.
        "labels": json.dumps(list(trained.outputs)),
    }
    with written_beside(request.to) as temporary:
        temporary.write_bytes(save(weights, metadata=metadata))
    averages = ", averages of the weights" if trained.weights == "ema" else ""
    tensors = counted(len(weights), "tensor")
    return [
        f"{trained.name}, step {trained.checkpoint.step}{averages}: {tensors}",
        _written([request.to], request.to),
    ]


def _folder(request: ExportRequest, say: Say) -> list[str]:
    name, _, recipe = stored_recipe(RunDirectory(request.run_dir), request.imports)
    if not isinstance(recipe, PretrainingRecipe | BertTaskRecipe):
        graph = "FILE.onnx, FILE.pt2, " if parts_of(recipe) else ""
        meant = meant_file(request.to) if graph else ""
        raise UserError(
            f"a folder is for Hugging Face, which has no class for '{name}'",
            where=f"--to {request.to}",
            todo=f"{meant}Possible for it: {graph}FILE.safetensors, tf.",
        )
    return export_huggingface(request, request.to, say)


def _tensorflow(request: ExportRequest) -> list[str]:
    if not request.use_ema:
        raise UserError(
            "TensorFlow's checkpoints contain the weights and their averages",
            where="--no-ema",
            todo="Omit it.",
        )
    return export_weights(
        WeightsRequest(
            source=request.run_dir,
            which=request.which,
            assignments=request.assignments,
            imports=request.imports,
        )
    )


def _refuse(request: ExportRequest, target: str, *names: str) -> None:
    for name in names:
        if getattr(request, name):
            option = "fix" if name == "fixed" else name.replace("_", "-")
            raise UserError(f"is not for {target}", where=f"--{option}", todo="Omit it.")


def _write(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    # A label may contain a lone surrogate, which UTF-8 cannot encode; escaped, it is valid JSON.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _written(paths: Sequence[Path], main: Path) -> str:
    others = [f"{path}/" if is_folder(path) else str(path) for path in paths[1:]]
    return ", ".join([f"written: {main} ({size_text(main.stat().st_size)})", *others])
