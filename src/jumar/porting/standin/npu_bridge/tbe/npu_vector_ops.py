"""Operators of the vector engine: LAMB's run on a device."""

import tensorflow.compat.v1 as tf1

from npu_bridge_standin.device_ops import device_only

lamb_apply_optimizer_assign = device_only("lamb_apply_optimizer_assign")
lamb_apply_weight_assign = device_only("lamb_apply_weight_assign")

PReLU = tf1.keras.layers.PReLU
