"""Precision settings: the rules across fields."""

from dataclasses import replace

import pytest

from jumar.ground.errors import UserError
from jumar.precision.loss_scale import ExponentialLossScale, FixedLossScale
from jumar.precision.settings import PrecisionSettings, unneeded_setting_notes
from jumar.settings import checked, from_json, override, to_json


def test_defaults_compute_in_the_dtype_of_the_model_without_a_loss_scale() -> None:
    settings = checked(PrecisionSettings())
    assert settings.mode == "must_keep_origin_dtype"
    assert settings.loss_scale.kind == "none"


def test_exponential_defaults_match_npu_bridge() -> None:
    scale = ExponentialLossScale()
    assert (scale.decr_every_n_nan_or_inf, scale.incr_ratio, scale.decr_ratio) == (2, 2, 0.8)


@pytest.mark.parametrize("mode", ["must_keep_origin_dtype", "force_fp16", "allow_fp32_to_fp16"])
def test_op_list_is_refused_with_a_mode_that_ignores_it(mode: str) -> None:
    with pytest.raises(UserError, match=f"no effect with the mode '{mode}'"):
        checked(PrecisionSettings(mode=mode, modify_mixlist="list.json"))


def test_op_list_is_accepted_with_every_name_of_a_mixed_mode() -> None:
    for mode in ("allow_mix_precision", "mixed_float16", "allow_mix_precision_bf16"):
        checked(PrecisionSettings(mode=mode, modify_mixlist="list.json"))


@pytest.mark.parametrize("value", ["0", "0.5", "-1"])
def test_loss_scale_below_1_is_refused(value: str) -> None:
    with pytest.raises(UserError, match=r"'loss_scale.init_loss_scale' cannot be"):
        override(PrecisionSettings(), ["loss_scale=fixed", f"loss_scale.init_loss_scale={value}"])


def test_shrink_ratio_of_0_is_refused() -> None:
    with pytest.raises(UserError, match="decr_ratio"):
        override(PrecisionSettings(), ["loss_scale.decr_ratio=0"])


def test_usual_initial_scale_can_be_written_as_a_power() -> None:
    power = "loss_scale.init_loss_scale=2**32"
    settings = override(PrecisionSettings(), ["loss_scale=fixed", power])
    assert settings.loss_scale == FixedLossScale(init_loss_scale=4294967296.0)


def test_loss_scale_in_a_mode_with_the_range_of_fp32_is_mentioned() -> None:
    scaled = FixedLossScale()
    settings = PrecisionSettings(mode="allow_mix_precision_bf16", loss_scale=scaled)
    assert "needs no loss scale" in unneeded_setting_notes(settings)[0]
    assert unneeded_setting_notes(replace(settings, mode="allow_mix_precision")) == ()


def test_emulation_in_a_mode_without_fp16_is_mentioned() -> None:
    assert "does not use fp16" in unneeded_setting_notes(PrecisionSettings(emulate_fp16=True))[0]


def test_settings_survive_json() -> None:
    settings = PrecisionSettings(
        mode="mixed_float16", loss_scale=ExponentialLossScale(incr_ratio=1.5)
    )
    assert from_json(PrecisionSettings(), to_json(settings), where="test") == settings


def test_settings_a_mode_does_not_need_get_a_note_each() -> None:
    everything = PrecisionSettings(
        loss_scale=FixedLossScale(), float32_layers=("a",), emulate_fp16=True
    )
    scale = "has the range of fp32 and needs no loss scale, but the loss is scaled"
    assert unneeded_setting_notes(everything) == (
        f"must_keep_origin_dtype {scale}",
        "float32_layers has no effect: must_keep_origin_dtype computes in float32 throughout",
        "emulate_fp16 has no effect: must_keep_origin_dtype does not use fp16",
    )
    assert unneeded_setting_notes(replace(everything, mode="allow_mix_precision_bf16")) == (
        f"allow_mix_precision_bf16 {scale}",
        "emulate_fp16 has no effect: allow_mix_precision_bf16 does not use fp16",
    )
    assert unneeded_setting_notes(replace(everything, mode="force_fp16")) == ()
    assert unneeded_setting_notes(PrecisionSettings()) == ()


def test_shipped_op_list_is_accepted_with_every_mode_and_another_is_reported() -> None:
    checked(PrecisionSettings(modify_mixlist="nlrn"))
    with pytest.raises(UserError) as error:
        checked(PrecisionSettings(mode="fp16", modify_mixlist="list.json"))
    assert (error.value.what, error.value.where) == (
        "'modify_mixlist' has no effect with the mode 'force_fp16'",
        "precision.modify_mixlist",
    )


@pytest.mark.parametrize(
    ("setting", "lowest", "highest"),
    [
        ("fixed.init_loss_scale", 1, None),
        ("exponential.init_loss_scale", 1, None),
        ("exponential.incr_every_n_steps", 1, None),
        ("exponential.decr_every_n_nan_or_inf", 1, None),
        ("exponential.incr_ratio", 1, None),
        ("exponential.decr_ratio", None, 1),
    ],
)
def test_numbers_of_a_loss_scale_have_their_limits(
    setting: str, lowest: int | None, highest: int | None
) -> None:
    kind, _, name = setting.partition(".")
    whole = name.startswith(("incr_every", "decr_every"))

    def overridden(value: float) -> PrecisionSettings:
        text = str(int(value)) if whole else str(value)
        return override(PrecisionSettings(), [f"loss_scale={kind}", f"loss_scale.{name}={text}"])

    step = 1 if whole else 0.01
    for limit, sign in ((lowest, -1), (highest, 1)):
        if limit is not None:
            assert getattr(overridden(limit).loss_scale, name) == limit
            with pytest.raises(UserError):
                overridden(limit + sign * step)


def test_loss_scale_defaults_match_npu_bridge() -> None:
    assert FixedLossScale() == FixedLossScale(init_loss_scale=1024.0)
    assert ExponentialLossScale() == ExponentialLossScale(
        init_loss_scale=1024.0,
        incr_every_n_steps=1000,
        decr_every_n_nan_or_inf=2,
        incr_ratio=2.0,
        decr_ratio=0.8,
    )
