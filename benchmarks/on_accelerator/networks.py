"""The other networks: steps a second in float32, bfloat16, and float16 with a loss scale."""

from collections.abc import Sequence
from functools import partial

from on_accelerator.cases import OTHERS, Case
from on_accelerator.measuring import Context, Measurement, Row
from on_accelerator.rivals import compare
from on_accelerator.trainings import MODES, in_mode, jumar_rival, short_name

_IN_SMALL = ("BigGAN-128, width 96, 32", "ViDeNN spatial, 50 px", "DS-CNN S", "PSENet, 640 px")
"""One of each kind of data."""


def measurements(context: Context) -> Sequence[Measurement]:
    """One a network, its modes in turns."""
    return [
        Measurement(name=case.name, measure=partial(in_modes, case=case), seconds=case.seconds)
        for case in OTHERS
        if not context.small or case.name in _IN_SMALL
    ]


def in_modes(context: Context, *, case: Case) -> list[Row]:
    """Steps of one network in three modes."""
    settings, samples = case.settings(context), case.samples(context)
    modes = context.pick(MODES[:3], MODES[:1])
    rivals = [
        jumar_rival(case.recipe, [*settings, *in_mode(mode)], label=short_name(mode))
        for mode in modes
    ]
    about = {"network": case.title(context), "batch": samples}
    return [
        {**row, "steps_s": row["samples_s"] / samples} if "samples_s" in row else row
        for row in compare(context, rivals, about, samples=samples, shares=False)
    ]
