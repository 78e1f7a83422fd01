"""What a recipe says about precision: mode, op lists, loss scale."""

from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.precision.modes import find_mode, mode_names
from jumar.precision.shipped_mixlists import is_shipped
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class LossScaleSettings:
    """The loss scale and its update rule; the names and defaults are those of npu_bridge."""

    kind: str = setting(
        "none",
        "How the loss scale changes: not at all (fixed), by the exponential-update rule, or none",
        choices=("none", "fixed", "exponential"),
    )
    init_loss_scale: float = setting(
        1024.0, "The loss scale at the first step; fixed keeps it", minimum=1
    )
    incr_every_n_steps: int = setting(
        1000, "Consecutive finite steps before the scale grows", unit="steps", minimum=1
    )
    decr_every_n_nan_or_inf: int = setting(
        2, "Overflows, finite steps between them or not, before it shrinks", unit="steps", minimum=1
    )
    incr_ratio: float = setting(2.0, "What the scale is multiplied by to grow", minimum=1)
    decr_ratio: float = setting(
        0.8, "What the scale is multiplied by to shrink", minimum=0.0, maximum=1
    )

    def check(self) -> None:
        """The rule across fields that `jumar.settings.checked` calls."""
        if self.decr_ratio == 0:
            raise UserError(
                "'loss_scale.decr_ratio' cannot be 0: the first overflow would end all scaling",
                todo="Allowed: above 0, up to 1; the models of Ascend's zoo use 0.5.",
            )


@dataclass(frozen=True, kw_only=True)
class PrecisionSettings:
    """In which precision a run computes."""

    mode: str = setting(
        "must_keep_origin_dtype", f"Ascend's precision mode: {', '.join(mode_names())}"
    )
    modify_mixlist: str | None = setting(
        None,
        "Path of a JSON file that changes the op lists, in CANN's form, or the name of a list that "
        "comes with the package (nlrn); mixed modes only",
    )
    emulate_fp16: bool = setting(
        False,
        "On a CPU, round to the range and mantissa of fp16 to find overflow, instead of "
        "computing fp16 modes in bf16",
    )
    loss_scale: LossScaleSettings = LossScaleSettings()

    def check(self) -> None:
        """The rules across fields that `jumar.settings.checked` calls.

        Raises:
            UserError: An unknown mode, or an op list with a mode that ignores it.
        """
        mode = find_mode(self.mode)
        # A shipped list is the recipe's and not the user's, who changes the mode alone.
        if self.modify_mixlist and not mode.uses_lists and not is_shipped(self.modify_mixlist):
            raise UserError(
                f"'modify_mixlist' has no effect with the mode '{mode.name}'",
                where="precision.modify_mixlist",
                todo="Use mode=allow_mix_precision or allow_mix_precision_bf16, or leave the "
                "list out.",
            )


def pointless(settings: PrecisionSettings) -> tuple[str, ...]:
    """What the settings ask for that this mode does not need; the run does it and says so."""
    mode = find_mode(settings.mode)
    notes: list[str] = []
    if settings.loss_scale.kind != "none" and not mode.fp16:
        notes.append(f"{mode.name} has the range of fp32 and needs no loss scale; it is applied")
    if settings.emulate_fp16 and not mode.fp16:
        notes.append(f"emulate_fp16 has no effect: {mode.name} has no fp16")
    return tuple(notes)
