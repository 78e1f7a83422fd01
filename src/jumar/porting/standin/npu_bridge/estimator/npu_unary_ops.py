"""Operators with one input: `npu_unary_ops.gelu(x)`."""

from npu_bridge.helper import helper

npu_unary_ops = helper.get_gen_ops()
