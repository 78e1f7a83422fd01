"""The command for atc."""

import json
from pathlib import Path

import pytest
import torch

from jumar.precision.modes import MODES
from jumar.precision.settings import PrecisionSettings
from jumar.runs.exporting.atc import AtcScript, atc_script
from jumar.runs.exporting.network import Axis, Exportable, Port

BATCH = Axis(usual=2, other=3)


def script(
    precision: PrecisionSettings, *, ops: frozenset[str] = frozenset(), **axes: Axis
) -> AtcScript:
    shape = ("batch", 3, *(name for name in axes if name != "batch"))
    exportable = Exportable(
        network=torch.nn.Identity(),
        inputs=[Port(name="image", shape=shape, meaning="")],
        outputs=[],
        axes=axes,
        made_up=lambda _lengths, _random: (),
        facts={},
    )
    return atc_script(exportable, stem="my net", ops=ops, precision=precision, soc_version="")


@pytest.mark.parametrize("mode", [mode.name for mode in MODES])
def test_every_mode_of_a_run_has_its_name_in_atc(mode: str) -> None:
    options = script(PrecisionSettings(mode=mode), batch=BATCH).command
    named = {
        "must_keep_origin_dtype": "--precision_mode_v2=origin",
        "allow_mix_precision": "--precision_mode_v2=mixed_float16",
        "allow_mix_precision_bf16": "--precision_mode_v2=mixed_bfloat16",
        "allow_fp32_to_fp16": "--precision_mode=allow_fp32_to_fp16",
        "allow_fp32_to_bf16": "--precision_mode=allow_fp32_to_bf16",
        "force_fp16": "--precision_mode_v2=fp16",
        "force_fp32": "--precision_mode_v2=cube_fp16in_fp32out",
    }
    assert f" {named[mode]}" in options
    assert options.count("--precision_mode") == 1


def test_batch_sizes_are_enumerated_if_no_shape_is_computed() -> None:
    plain = script(PrecisionSettings(), batch=BATCH).command
    assert '--input_shape="image:-1,3"' in plain
    assert '--dynamic_batch_size="1,2,4,8"' in plain
    measured = script(PrecisionSettings(), ops=frozenset({"Conv", "Shape"}), batch=BATCH)
    assert '--input_shape="image:$BATCH,3"' in measured.command
    assert ': "${BATCH:=1}"' in measured.text
    assert "dynamic" not in measured.command
    sides = script(PrecisionSettings(), batch=BATCH, height=Axis(usual=96, other=64))
    assert '--input_shape="image:$BATCH,3,$HEIGHT"' in sides.command
    assert ': "${HEIGHT:=96}"' in sides.text


def test_op_list_is_passed_with_canns_names(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    names = ["SoftmaxV2", "aten::exp"]
    path.write_text(json.dumps({"black-list": {"to-add": names}}))
    mixed = PrecisionSettings(mode="allow_mix_precision", modify_mixlist=str(path))
    made = script(mixed, batch=BATCH)
    assert "--modify_mixlist='my net.mixlist.json'" in made.command
    assert json.loads(made.mixlist) == {"black-list": {"to-add": ["SoftmaxV2"]}}
    assert made.left_out == ["PyTorch's names in the op list: aten::exp"]
    assert script(PrecisionSettings(modify_mixlist="nlrn"), batch=BATCH).mixlist == ""


def test_omitted_float32_layers_are_reported() -> None:
    settings = PrecisionSettings(mode="allow_mix_precision", float32_layers=("head",))
    made = script(settings, batch=BATCH)
    assert "float32_layers" in made.left_out[0]
    assert "float32_layers" in made.text
