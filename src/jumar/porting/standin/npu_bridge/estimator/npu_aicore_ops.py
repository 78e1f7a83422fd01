"""Operators of the AI core."""

from tensorflow.python.framework import dtypes

from npu_bridge.estimator import npu_ops
from npu_bridge.helper import helper

npu_aicore_ops = helper.get_gen_ops()


def fast_gelu_v2(x, name=None):
    """The cheap Gaussian error linear unit."""
    return npu_aicore_ops.fast_gelu_v2(x, name)


def centralization(x, axes, name=None):
    """Less its mean over some axes."""
    return npu_aicore_ops.centralization(x, axes, name=name)


def prelu(x, weight):
    """Parametric ReLU."""
    return npu_aicore_ops.p_relu(x, weight)


def dropout_v3(x, keep_prob, noise_shape=None, seed=None, name=None):
    """As `npu_ops.dropout`."""
    return npu_ops.dropout(x, keep_prob, noise_shape, seed, name)


def dropout_v4(x, keep_prob, noise_shape=None, seed=None, output_dtype=dtypes.bool, name=None):
    """As `npu_ops.dropout`; the type is that of the mask on the device."""
    del output_dtype
    return npu_ops.dropout(x, keep_prob, noise_shape, seed, name)


def layer_norm(
    x, gamma, beta, begin_norm_axis=0, begin_params_axis=0, epsilon=0.0000001, name=None
):
    """Layer normalisation: a list of result, mean and variance."""
    return list(
        npu_aicore_ops.fused_layer_norm(
            x, gamma, beta, begin_norm_axis, begin_params_axis, epsilon, name
        )
    )


def nonzero(x, transpose=False, output_type=dtypes.int64, name=None):
    """The indices of what is not zero."""
    return npu_aicore_ops.non_zero(x, transpose, output_type, name=name)


def nonzerowithvalue(x, transpose=False, output_type=dtypes.int64, name=None):
    """Only on a device."""
    return npu_aicore_ops.non_zero_with_value(x, transpose, output_type, name=name)


def lru_cache_v2(index_list, data, cache, tag, is_last_call, pre_route_count, name=None):
    """Only on a device."""
    return npu_aicore_ops.lru_cache_v2(index_list, data, cache, tag)


def prod_env_mat_a(
    coord,
    types,
    natoms,
    box,
    mesh,
    davg,
    dstd,
    rcut_a=0.0,
    rcut_r=0.0,
    rcut_r_smth=0.0,
    sel_a=None,
    sel_r=None,
    name=None,
):
    """Only on a device."""
    return npu_aicore_ops.prod_env_mat_a(coord, types)


def prodvirialsea(net_deriv, in_deriv, rij, nlist, natoms, n_a_sel=0, n_r_sel=0, name=None):
    """Only on a device."""
    return npu_aicore_ops.prod_virial_se_a(net_deriv, in_deriv)


def prodforcesea(net_deriv, in_deriv, nlist, natoms, n_a_sel=0, n_r_sel=0, name=None):
    """Only on a device."""
    return npu_aicore_ops.prod_force_se_a(net_deriv, in_deriv)


def tabulatefusionsea(table, table_info, em_x, em, last_layer_size=128, name=None):
    """Only on a device."""
    return npu_aicore_ops.tabulate_fusion_se_a(table, table_info)


def tabulatefusionseagrad(table, table_info, em_x, em, dy_dem_x, dy_dem, name=None):
    """Only on a device."""
    return npu_aicore_ops.tabulate_fusion_se_a_grad(table, table_info)


def tabulatefusion(table, table_info, em_x, em, last_layer_size=128, name=None):
    """Only on a device."""
    return npu_aicore_ops.tabulate_fusion(table, table_info)


def tabulatefusiongrad(table, table_info, em_x, em, dy_dem_x, dy_dem, name=None):
    """Only on a device."""
    return npu_aicore_ops.tabulate_fusion_grad(table, table_info)
