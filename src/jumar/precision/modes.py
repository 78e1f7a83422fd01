"""Ascend's precision modes: their meaning on Ascend, and jumar's implementation on each device.

The definitions follow the documentation of the TensorFlow adapter and of the graph engine for
`precision_mode` and `precision_mode_v2`. The table in docs/precision.md contains the same texts.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from jumar.ground.errors import UserError, unknown_name

Form = Literal["origin", "mixed", "cube", "cube_fp32_out", "all"]
"""The ops that run in low precision: none; those on the white list; matrix products and
convolutions, with the result converted to fp32; matrix products and convolutions, accumulated and
returned in fp32; all ops."""


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One precision mode."""

    name: str
    aliases: tuple[str, ...]
    form: Form
    low: torch.dtype | None
    """The requested low precision; None if there is none."""
    ascend: str
    """Its meaning on Ascend."""
    npu: str
    cuda: str
    cpu: str

    @property
    def uses_lists(self) -> bool:
        """Whether the op lists, and therefore a mixlist, determine the precision of ops."""
        return self.form == "mixed"

    @property
    def fp16(self) -> bool:
        """Whether the mode requests fp16, whose range makes a loss scale necessary."""
        return self.low == torch.float16


MODES: tuple[Mode, ...] = (
    Mode(
        name="must_keep_origin_dtype",
        aliases=("origin",),
        form="origin",
        low=None,
        ascend="Every op keeps the dtype of the graph. An fp32 op for which the chip has only an "
        "fp16 kernel runs on the AI CPU, or fails if there is none.",
        npu="fp32 throughout: no autocast, HF32 off for matmul and for convolution.",
        cuda="fp32 throughout: no autocast, TF32 off for matmul and for cuDNN.",
        cpu="fp32 throughout: no autocast, float32 matmul precision `highest`.",
    ),
    Mode(
        name="allow_mix_precision",
        aliases=("allow_mix_precision_fp16", "mixed_float16"),
        form="mixed",
        low=torch.float16,
        ascend="White-listed ops run in fp16, black-listed ones keep their dtype, gray ones "
        "follow the op that feeds them. Meant to be used with a loss scale.",
        npu="Autocast in fp16 with the op lists; HF32 off for ops that stay in fp32.",
        cuda="Autocast in fp16 with the op lists; TF32 off for ops that stay in fp32.",
        cpu="The same with bf16 in place of fp16, which the run reports; with `emulate_fp16`, "
        "fp32 arithmetic with inputs and outputs of white ops rounded to fp16.",
    ),
    Mode(
        name="allow_mix_precision_bf16",
        aliases=("mixed_bfloat16",),
        form="mixed",
        low=torch.bfloat16,
        ascend="As allow_mix_precision with bf16. A2, A3 and 950 products only, not Ascend 910.",
        npu="Autocast in bf16 with the op lists; HF32 off for ops that stay in fp32.",
        cuda="Autocast in bf16 with the op lists; TF32 off for ops that stay in fp32.",
        cpu="Autocast in bf16 with the op lists.",
    ),
    Mode(
        name="allow_fp32_to_fp16",
        aliases=(),
        form="cube",
        low=torch.float16,
        ascend="Matrix products and convolutions run in fp16, even if the graph specifies fp32; "
        "all other ops stay in fp32 if the chip supports it. Default for training on Ascend 910.",
        npu="Autocast in fp16 only for matrix products and convolutions; their results are "
        "converted to fp32, so all other ops run in fp32.",
        cuda="As on the NPU.",
        cpu="The same with bf16 in place of fp16, which the run reports; with `emulate_fp16`, "
        "fp32 arithmetic with inputs and outputs rounded to fp16.",
    ),
    Mode(
        name="allow_fp32_to_bf16",
        aliases=(),
        form="origin",
        low=None,
        ascend="fp32 ops stay in fp32 if the chip has the kernel; otherwise they run in bf16 or "
        "on the AI CPU.",
        npu="fp32 throughout, as must_keep_origin_dtype: PyTorch has an fp32 kernel for every op, "
        "so no op needs bf16.",
        cuda="As on the NPU.",
        cpu="As on the NPU.",
    ),
    Mode(
        name="force_fp16",
        aliases=("fp16",),
        form="all",
        low=torch.float16,
        ascend="fp16 for every op that supports it. Meant for inference; the zoo trains with it "
        "too.",
        npu="Autocast in fp16 for every op that computes, including losses; parameters stay fp32 "
        "as master weights, batch norm keeps fp32 statistics, and ops without an fp16 kernel "
        "(FFT, decompositions, CTC and some others) run in fp32.",
        cuda="As on the NPU.",
        cpu="The same with bf16 in place of fp16, which the run reports; with `emulate_fp16`, "
        "fp32 arithmetic with inputs and outputs of every op rounded to fp16.",
    ),
    Mode(
        name="force_fp32",
        aliases=("cube_fp16in_fp32out",),
        form="cube_fp32_out",
        low=torch.float16,
        ascend="Not everything in fp32: matrix products and convolutions have fp16 inputs and "
        "fp32 outputs, forward and backward; all other ops run in fp32.",
        npu="Inputs of matrix products and convolutions, and the gradients that reach them, are "
        "rounded to fp16 and multiplied in HF32, which represents every fp16 value, with fp32 "
        "sums.",
        cuda="As on the NPU, with TF32 in place of HF32.",
        cpu="As on the NPU, in fp32 arithmetic: exact, and at the speed of fp32.",
    ),
)

_REFUSED = dict.fromkeys(
    ("mixed_hif8", "cube_hif8"),
    "HiFloat8 exists only on the Ascend 950, is documented as not yet supported by CANN, and "
    "PyTorch has no such dtype",
)


def mode_names() -> list[str]:
    """Return all accepted names, each mode followed by its aliases."""
    return [name for mode in MODES for name in (mode.name, *mode.aliases)]


def find_mode(name: str) -> Mode:
    """Return the mode with a name or alias.

    Raises:
        UserError: The name is unknown, or a mode of CANN that jumar does not support.
    """
    for mode in MODES:
        if name == mode.name or name in mode.aliases:
            return mode
    if name in _REFUSED:
        raise UserError(
            f"the precision mode '{name}' is not available: {_REFUSED[name]}",
            where="precision.mode",
            todo="The closest mode is allow_mix_precision_bf16.",
        )
    raise unknown_name("precision mode", name, mode_names(), where="precision.mode")


def mode_table() -> list[dict[str, str]]:
    """Return one row per mode, with the texts in docs/precision.md."""
    return [
        {
            "mode": mode.name,
            "also": ", ".join(mode.aliases),
            "on Ascend": mode.ascend,
            "NPU": mode.npu,
            "CUDA": mode.cuda,
            "CPU": mode.cpu,
        }
        for mode in MODES
    ]
