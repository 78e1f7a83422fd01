"""BigGAN's names in the original's graph, in its order."""

import numpy as np
import pytest
import torch

from jumar.models.biggan import BigGan
from jumar.models.biggan_names import Row, tf_names

NORM = ("gamma", "beta", "moving_mean", "moving_variance")


def attention(network: str) -> list[str]:
    scope = f"{network}/self_attention"
    parts = [("f_conv", ()), ("g_conv", ()), ("h_conv", ()), ("attn_conv", (f"{scope}/gamma",))]
    return [
        name
        for part, before in parts
        for name in (*before, *(f"{scope}/{part}/{end}" for end in ("kernel", "u", "bias")))
    ]


def convolution(scope: str) -> list[str]:
    return [f"{scope}/kernel", f"{scope}/u"]


def dense(scope: str) -> list[str]:
    return [f"{scope}/kernel", f"{scope}/bias", f"{scope}/u"]


def expected_names(norms: bool) -> list[str]:
    def norm(scope: str) -> list[str]:
        return [f"{scope}/batch_norm/{part}" for part in NORM] if norms else []

    names: list[str] = []
    for size in (1, 2, 4, 8, 16):
        scope = f"discriminator/resblock_down_{size}"
        for part in ("res1", "res2"):
            names += norm(f"{scope}/{part}") + convolution(f"{scope}/{part}/conv_0")
        names += convolution(f"{scope}/skip/conv_0")
        names += attention("discriminator") if size == 1 else []
    for part in ("res1", "res2"):
        scope = f"discriminator/resblock/{part}"
        names += convolution(f"{scope}/conv_0") + norm(scope)
    names += dense("discriminator/D_logit") + dense("generator/dense")
    for size in (16, 8, 4, 2, 1):
        scope = f"generator/resblock_up_{size}"
        for part in ("res1", "res2"):
            inner = f"{scope}/{part}/batch_norm"
            names += [f"{inner}/pop_mean", f"{inner}/pop_var"]
            names += [
                f"{inner}/{k}/dense/{e}" for k in ("beta", "gamma") for e in ("kernel", "bias")
            ]
            names += convolution(f"{scope}/{part}/deconv_0")
        names += convolution(f"{scope}/skip/deconv_0")
        names += attention("generator") if size == 2 else []
    names += [f"generator/batch_norm/{part}" for part in NORM]
    return names + convolution("generator/G_logit")


@pytest.mark.parametrize("norms", [True, False])
def test_names_match_the_originals_graph(norms: bool) -> None:
    with torch.device("meta"):
        model = BigGan(width=8, discriminator_norms=norms)
    names = tf_names(model)
    assert [variable.tf_name for variable in names.variables] == expected_names(norms)
    kept = [name for name in model.state_dict() if not name.endswith("num_batches_tracked")]
    assert sorted(variable.name for variable in names.variables) == sorted(kept)
    assert (names.averages, names.averaged) == ("swapped", "^generator/")
    assert [(each.powers, each.trains) for each in names.optimizers] == [
        (("beta1_power", "beta2_power"), "^discriminator/"),
        (("beta1_power_1", "beta2_power_1"), "^generator/"),
    ]
    assert (names.counting.global_step, names.counting.first_number) == (1, 1)


def test_spectral_norm_vector_is_a_row_in_tensorflow_and_a_vector_in_torch() -> None:
    row = np.arange(4.0).reshape(1, 4)
    assert Row().to_torch(row).tolist() == [0, 1, 2, 3]
    assert Row().to_tensorflow(row[0]).tolist() == row.tolist()
    assert len({Row(), Row()}) == 1
