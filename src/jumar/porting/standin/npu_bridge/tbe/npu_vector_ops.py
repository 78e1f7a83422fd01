"""Operators of the vector engine: LAMB's run on a device."""

import tensorflow.compat.v1 as tf1

from npu_bridge_standin.signatures import add_device_only

PReLU = tf1.keras.layers.PReLU

add_device_only(globals())
