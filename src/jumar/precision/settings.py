"""A recipe's precision settings: mode, op lists, loss scale."""

from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.precision.loss_scale import LossScaleSettings, NoLossScale
from jumar.precision.modes import find_mode, mode_names
from jumar.precision.shipped_mixlists import is_shipped
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class PrecisionSettings:
    """The precision in which a run computes."""

    mode: str = setting(
        "must_keep_origin_dtype", f"Ascend's precision mode: {', '.join(mode_names())}."
    )
    modify_mixlist: str | None = setting(
        None,
        "JSON file that changes the op lists, in CANN's format, or the name of a list shipped "
        "with the package (nlrn); mixed modes only.",
    )
    float32_layers: tuple[str, ...] = setting(
        (), "Layers whose ops all stay in float32, by path or pattern (encoder.0.*)."
    )
    emulate_fp16: bool = setting(
        False,
        "On a CPU, round to the range and mantissa of fp16 to find overflow, instead of "
        "computing fp16 modes in bf16.",
    )
    loss_scale: LossScaleSettings = setting(NoLossScale(), "The rule of the loss scale.")

    def check(self) -> None:
        """Check rules that span several fields; called by `jumar.settings.checked`.

        Raises:
            UserError: The mode is unknown, or ignores the op list.
        """
        mode = find_mode(self.mode)
        # A shipped list belongs to the recipe, not to the user, who only changes the mode.
        if self.modify_mixlist and not mode.uses_lists and not is_shipped(self.modify_mixlist):
            raise UserError(
                f"'modify_mixlist' has no effect with the mode '{mode.name}'",
                where="precision.modify_mixlist",
                todo="Use mode=allow_mix_precision or allow_mix_precision_bf16, or omit the list.",
            )


def unneeded_setting_notes(settings: PrecisionSettings) -> tuple[str, ...]:
    """Return notes about settings that the mode does not need, for the run's first line."""
    mode = find_mode(settings.mode)
    notes: list[str] = []
    if not isinstance(settings.loss_scale, NoLossScale) and not mode.fp16:
        notes.append(
            f"{mode.name} has the range of fp32 and needs no loss scale, but the loss is scaled"
        )
    if settings.float32_layers and mode.low is None:
        notes.append(f"float32_layers has no effect: {mode.name} computes in float32 throughout")
    if settings.emulate_fp16 and not mode.fp16:
        notes.append(f"emulate_fp16 has no effect: {mode.name} does not use fp16")
    return tuple(notes)
