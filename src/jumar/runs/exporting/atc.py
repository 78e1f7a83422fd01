"""A script with the command that compiles an ONNX file to an Ascend `.om` with CANN's `atc`.

Based on the option pages of "ATC Offline Model Builder" of CANN 8.0 to 9.1; not tested with CANN.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jumar.ground.json_text import parse_json
from jumar.ground.paths import read_text
from jumar.precision.modes import find_mode
from jumar.precision.settings import PrecisionSettings
from jumar.precision.shipped_mixlists import find_mixlist
from jumar.runs.exporting.network import Exportable

_MODE_NAMES_V2 = {
    "must_keep_origin_dtype": "origin",
    "allow_mix_precision": "mixed_float16",
    "allow_mix_precision_bf16": "mixed_bfloat16",
    "force_fp16": "fp16",
    "force_fp32": "cube_fp16in_fp32out",
}
"""Modes with a name for `--precision_mode_v2`; the others are passed as `--precision_mode`."""
_BATCH_SIZES = "1,2,4,8"
_SHAPE_OPS = frozenset({"Shape", "Range", "NonZero", "Resize"})
"""Ops of graphs that compute shapes; atc accepts no list of batch sizes for such graphs."""


@dataclass(frozen=True, kw_only=True)
class AtcScript:
    """The script and its companion files.

    Attributes:
        text: The script.
        command: The command in it, one option per line.
        mixlist: The op list for `--modify_mixlist`; empty if there is none.
        left_out: Precision settings of the run without an atc option, one per line.
    """

    text: str
    command: str
    mixlist: str
    left_out: Sequence[str]


def atc_script(
    exportable: Exportable,
    *,
    stem: str,
    ops: frozenset[str],
    precision: PrecisionSettings,
    soc_version: str,
) -> AtcScript:
    """Return the script to put next to `STEM.onnx`.

    Args:
        exportable: The network.
        stem: Name of the file without its suffix.
        ops: Op types in the file.
        precision: The precision of the run.
        soc_version: The chip; empty to let the user of the script name it.

    Raises:
        UserError: The run's op list can no longer be read.
    """
    mixlist, left_out = _mixlist(precision)
    if precision.float32_layers and find_mode(precision.mode).low is not None:
        left_out.append(
            "float32_layers: atc selects ops of the graph, not layers; see its --keep_dtype"
        )
    mode = find_mode(precision.mode).name
    variables, shapes, batch_sizes = _shapes(exportable, ops)
    options = [
        "--framework=5",
        f"--model={shlex.quote(f'{stem}.onnx')}",
        f"--output={shlex.quote(stem)}",
        f'--input_shape="{shapes}"',
        *([f'--dynamic_batch_size="{batch_sizes}"'] if batch_sizes else []),
        '--soc_version="$SOC_VERSION"',
        f"--precision_mode_v2={_MODE_NAMES_V2[mode]}"
        if mode in _MODE_NAMES_V2
        else f"--precision_mode={mode}",
        *([f"--modify_mixlist={shlex.quote(f'{stem}.mixlist.json')}"] if mixlist else []),
    ]
    command = " \\\n  ".join(["atc", *options])
    chip = (
        f': "${{SOC_VERSION:={soc_version}}}"'
        if soc_version
        else ': "${SOC_VERSION:?the chip: Ascend and the Name of npu-smi info, as in Ascend910B1}"'
    )
    lines = [
        "#!/bin/sh",
        f"# Compiles {stem}.onnx to {stem}.om with atc of CANN 7.0 or newer. Written from atc's",
        "# documentation and not tested, for lack of a machine with CANN.",
        "set -eu",
        'cd -- "$(dirname -- "$0")"',
        chip,
        *[f': "${{{name.upper()}:={length}}}"' for name, length in variables.items()],
        *[f"# Left out: {setting}" for setting in left_out],
        command,
    ]
    return AtcScript(
        text="\n".join(lines) + "\n", command=command, mixlist=mixlist, left_out=left_out
    )


def _shapes(exportable: Exportable, ops: frozenset[str]) -> tuple[dict[str, int], str, str]:
    """Return shell variables with defaults, the `--input_shape`, and the listed batch sizes."""
    axes = exportable.axes
    lists_batches = list(axes) == ["batch"] and not ops & _SHAPE_OPS
    variables = {
        name: 1 if name == "batch" else axis.usual
        for name, axis in axes.items()
        if not (lists_batches and name == "batch")
    }

    def length(axis: int | str) -> str:
        if isinstance(axis, int):
            return str(axis)
        return "-1" if lists_batches else f"${axis.upper()}"

    shapes = ";".join(
        f"{port.name}:{','.join(map(length, port.shape))}" for port in exportable.inputs
    )
    return variables, shapes, _BATCH_SIZES if lists_batches else ""


def has_mixlist(precision: PrecisionSettings) -> bool:
    """Return whether a run has an op list and a mode that uses it."""
    return bool(precision.modify_mixlist) and find_mode(precision.mode).uses_lists


def _mixlist(precision: PrecisionSettings) -> tuple[str, list[str]]:
    """Return the run's op list restricted to names known to CANN, and a line on the others."""
    if not precision.modify_mixlist or not has_mixlist(precision):
        return "", []
    content: Any = parse_json(read_text(find_mixlist(precision.modify_mixlist)))
    torch_names: list[str] = []

    def without_torch_names(names: Sequence[str]) -> list[str]:
        torch_names.extend(name for name in names if "::" in name)
        return [name for name in names if "::" not in name]

    content_for_atc = {
        list_name: {
            change: without_torch_names(cast("Sequence[str]", names))
            for change, names in cast("Mapping[str, Any]", changes).items()
        }
        for list_name, changes in cast("Mapping[str, Any]", content).items()
    }
    left_out = [f"PyTorch's names in the op list: {', '.join(torch_names)}"] if torch_names else []
    return json.dumps(content_for_atc, indent=2) + "\n", left_out
