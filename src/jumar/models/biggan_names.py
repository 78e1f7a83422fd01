"""Names of the variables in taki0112's BigGAN-128, in the order of its graph."""

from dataclasses import dataclass

from jumar.models.biggan import BigGan
from jumar.models.tf_layout import (
    Array,
    Layout,
    TfCounting,
    TfNames,
    TfVariable,
    adam_state,
    batch_norm_variables,
    convolution_kernel,
    dense_variables,
    unchanged,
)

_UP_SIZES = (16, 8, 4, 2, 1)
_DOWN_SIZES = (1, 2, 4, 8, 16)
_ATTENTION = {"f_conv": "keys", "g_conv": "queries", "h_conv": "values", "attn_conv": "out"}


@dataclass(frozen=True)
class Row(Layout):
    """Between [1, n] and [n], for the vector of a spectral norm."""

    def to_torch(self, array: Array) -> Array:
        return array.reshape(-1)

    def to_tensorflow(self, array: Array) -> Array:
        return array.reshape(1, -1)


def tf_names(model: BigGan) -> TfNames:
    """The 210 variables of the original, `u` and statistics included; fewer without norms.

    Its checkpoints keep the generator's averages under the plain names, and the raw weights under
    `<name>/ExponentialMovingAverage`; the discriminator has none.
    """
    return TfNames(
        variables=_discriminator(norms=model.discriminator.norms) + _generator(),
        averages="swapped",
        averaged=r"^generator/",
        # The original creates the discriminator's optimizer first.
        optimizers=(
            adam_state(trains="^discriminator/"),
            adam_state(number=1, trains="^generator/"),
        ),
        # Its loop counts the discriminator's updates from 1, but only in file names.
        counting=TfCounting(first_number=1),
        ignored=(r".*/Adam(_\d+)?$", r"(.*/)?beta[12]_power(_\d+)?$"),
    )


def _discriminator(*, norms: bool) -> list[TfVariable]:
    variables: list[TfVariable] = []
    for number, size in enumerate(_DOWN_SIZES):
        scope, name = f"discriminator/resblock_down_{size}", f"discriminator.down.{number}"
        for part in (1, 2):
            if norms:
                tf_norm, norm = f"{scope}/res{part}/batch_norm", f"{name}.norm{part}"
                variables += batch_norm_variables(tf_norm, norm)
            variables += _kernel(f"{scope}/res{part}/conv_0", f"{name}.conv{part}")
        variables += _kernel(f"{scope}/skip/conv_0", f"{name}.skip")
        if number == 0:
            variables += _attention("discriminator")
    for part in (1, 2):
        scope, name = f"discriminator/resblock/res{part}", "discriminator.block"
        variables += _kernel(f"{scope}/conv_0", f"{name}.conv{part}")
        if norms:
            variables += batch_norm_variables(f"{scope}/batch_norm", f"{name}.norm{part}")
    return variables + _dense("discriminator/D_logit", "discriminator.out")


def _generator() -> list[TfVariable]:
    variables = _dense("generator/dense", "generator.dense")
    for number, size in enumerate(_UP_SIZES):
        scope, name = f"generator/resblock_up_{size}", f"generator.up.{number}"
        for part in (1, 2):
            variables += _conditional(f"{scope}/res{part}/batch_norm", f"{name}.norm{part}")
            variables += _kernel(f"{scope}/res{part}/deconv_0", f"{name}.conv{part}")
        variables += _kernel(f"{scope}/skip/deconv_0", f"{name}.skip")
        if number == 3:
            variables += _attention("generator")
    variables += batch_norm_variables("generator/batch_norm", "generator.norm")
    return variables + _kernel("generator/G_logit", "generator.out")


def _attention(network: str) -> list[TfVariable]:
    scope, name = f"{network}/self_attention", f"{network}.attention"
    variables: list[TfVariable] = []
    for tf_part, part in _ATTENTION.items():
        if tf_part == "attn_conv":
            variables.append(unchanged(f"{scope}/gamma", f"{name}.gain"))
        variables += _kernel(f"{scope}/{tf_part}", f"{name}.{part}")
        variables.append(unchanged(f"{scope}/{tf_part}/bias", f"{name}.{part}.bias"))
    return variables


def _conditional(scope: str, name: str) -> list[TfVariable]:
    return [
        unchanged(f"{scope}/pop_mean", f"{name}.running_mean"),
        unchanged(f"{scope}/pop_var", f"{name}.running_var"),
        *dense_variables(f"{scope}/beta/dense", f"{name}.shift"),
        *dense_variables(f"{scope}/gamma/dense", f"{name}.gain"),
    ]


def _kernel(scope: str, name: str) -> list[TfVariable]:
    """The kernel and the `u` of a convolution, transposed or not."""
    return [
        convolution_kernel(f"{scope}/kernel", f"{name}.weight"),
        TfVariable(tf_name=f"{scope}/u", name=f"{name}.u", layout=Row()),
    ]


def _dense(scope: str, name: str) -> list[TfVariable]:
    return [
        *dense_variables(scope, name),
        TfVariable(tf_name=f"{scope}/u", name=f"{name}.u", layout=Row()),
    ]
