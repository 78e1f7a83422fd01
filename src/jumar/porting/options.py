"""The options of a port, which the rules, the launch files and the reports share."""

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, get_args

from jumar.ground.errors import UserError, unknown_name

PrecisionMode = Literal[
    "force_fp32",
    "allow_fp32_to_fp16",
    "force_fp16",
    "must_keep_origin_dtype",
    "allow_mix_precision",
    "cube_fp16in_fp32out",
    "allow_mix_precision_fp16",
    "allow_mix_precision_bf16",
    "allow_fp32_to_bf16",
]
MIXED_PRECISION_MODES = tuple(
    mode for mode in get_args(PrecisionMode) if mode.startswith("allow_mix_precision")
)


@dataclass(frozen=True, kw_only=True)
class LossScale:
    """A loss scale, either fixed or growing until values overflow."""

    kind: Literal["fixed", "exponential"]
    init_loss_scale: float
    incr_every_n_steps: int = 1000
    decr_every_n_nan_or_inf: int = 2
    decr_ratio: float = 0.5
    incr_ratio: float = 2.0


_MAX_DEVICES = 65_536
"""Larger than any Ascend cluster."""
_MAX_ITERATIONS = 2**31 - 1
"""The limit of TensorFlow's 32-bit loop counter."""


@dataclass(frozen=True, kw_only=True)
class PortOptions:
    """Everything that determines how a tree is ported."""

    source: Literal["tensorflow", "torch"] = "tensorflow"
    minimal: bool = False
    precision: PrecisionMode | None = None
    mixlist: str = ""
    loss_scale: LossScale | None = None
    devices: int = 1
    profiling: bool = False
    overflow_dump: bool = False
    auto_tune: bool = False
    iterations_per_loop: int = 1
    modelarts: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.devices <= _MAX_DEVICES:
            raise UserError(
                f"{self.devices} devices are not possible",
                where="--devices",
                todo=f"Use 1 to {_MAX_DEVICES}, such as 8.",
            )
        if not 1 <= self.iterations_per_loop <= _MAX_ITERATIONS:
            raise UserError(
                f"{self.iterations_per_loop} iterations per loop are not possible",
                where="--iterations-per-loop",
                todo=f"Use 1 to {_MAX_ITERATIONS}.",
            )
        if self.mixlist and self.precision not in MIXED_PRECISION_MODES:
            raise UserError(
                "modify_mixlist needs a mixed-precision mode; without one, the session fails",
                where="--mixlist",
                todo="Add --precision allow_mix_precision.",
            )
        if self.source == "torch" and (self.iterations_per_loop > 1 or self.auto_tune):
            raise UserError(
                "these options exist for TensorFlow only",
                where="--from torch",
                todo="Omit --iterations-per-loop and --auto-tune.",
            )

    @property
    def distributed(self) -> bool:
        return self.devices > 1

    @property
    def has_session_options(self) -> bool:
        """Whether sessions need more than the adapter's defaults."""
        return (
            bool(self.precision or self.mixlist)
            or self.profiling
            or self.overflow_dump
            or self.auto_tune
            or self.iterations_per_loop > 1
        )

    def as_typed(self) -> tuple[str, ...]:
        """Return the options as typed on a command line, without those at their defaults."""
        typed: list[str] = []
        if self.source == "torch":
            typed += ["--from", "torch"]
        typed += ["--minimal"] if self.minimal else []
        typed += ["--precision", self.precision] if self.precision else []
        typed += ["--mixlist", self.mixlist] if self.mixlist else []
        typed += ["--loss-scale", _loss_scale_text(self.loss_scale)] if self.loss_scale else []
        typed += ["--devices", str(self.devices)] if self.devices > 1 else []
        typed += ["--profiling"] if self.profiling else []
        typed += ["--overflow-dump"] if self.overflow_dump else []
        typed += ["--auto-tune"] if self.auto_tune else []
        if self.iterations_per_loop > 1:
            typed += ["--iterations-per-loop", str(self.iterations_per_loop)]
        typed += ["--modelarts"] if self.modelarts else []
        return tuple(typed)


def precision_mode(text: str) -> PrecisionMode:
    """Return the text as one of Ascend's precision modes.

    Raises:
        UserError: There is no such mode; the message names the nearest one.
    """
    for mode in get_args(PrecisionMode):
        if mode == text:
            return mode
    raise unknown_name("precision mode", text, get_args(PrecisionMode), where="--precision")


def parse_loss_scale(text: str) -> LossScale:
    """Parse `fixed`, `fixed:1024`, `exponential` or `exponential:2**32,1000,2,0.5`.

    The numbers are the initial scale, the steps without overflow before it doubles, the overflows
    before it is reduced, and the factor by which it is then multiplied.

    Raises:
        UserError: The text has none of these forms.
    """
    kind, _, rest = text.partition(":")
    numbers = [_number(part) for part in rest.split(",")] if rest else []
    if kind == "fixed" and len(numbers) <= 1:
        scale = numbers[0] if numbers else 1024.0
        if scale >= 1:
            return LossScale(kind="fixed", init_loss_scale=scale)
    if kind == "exponential" and len(numbers) <= 4:
        defaults = [2.0**32, 1000.0, 2.0, 0.5]
        scale, steps, overflows, ratio = [*numbers, *defaults[len(numbers) :]]
        if scale >= 1 and steps >= 1 and overflows >= 1 and 0 < ratio < 1:
            return LossScale(
                kind="exponential",
                init_loss_scale=scale,
                incr_every_n_steps=int(steps),
                decr_every_n_nan_or_inf=int(overflows),
                decr_ratio=ratio,
            )
    raise UserError(
        f"'{text}' is not a loss scale",
        where="--loss-scale",
        todo="Write fixed:1024 or exponential:2**32,1000,2,0.5.",
    )


def _number(text: str) -> float:
    """Parse a number, which may be a power such as 2**32; return -1 if it is not a number."""
    power = re.fullmatch(r"\s*(\d+)\s*\*\*\s*(\d{1,3})\s*", text)
    try:
        return float(int(power[1]) ** int(power[2])) if power else float(text)
    except (ValueError, OverflowError):
        return -1.0


def _loss_scale_text(scale: LossScale) -> str:
    if scale.kind == "fixed":
        return f"fixed:{scale.init_loss_scale:g}"
    significand, _, exponent = scale.init_loss_scale.hex().partition("p+")
    is_power = significand == "0x1.0000000000000"
    initial = f"2**{exponent}" if is_power else f"{scale.init_loss_scale:.0f}"
    return (
        f"exponential:{initial},{scale.incr_every_n_steps},"
        f"{scale.decr_every_n_nan_or_inf},{scale.decr_ratio:g}"
    )


def mixlist_name(options: PortOptions) -> str:
    """Return the file name of the op list in the ported tree."""
    return PurePath(options.mixlist).name
