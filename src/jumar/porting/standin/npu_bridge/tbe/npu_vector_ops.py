"""Operators of the vector engine; those for LAMB run only on a device."""

import tensorflow.compat.v1 as tf1

from npu_bridge_standin.signatures import add_device_only

PReLU = tf1.keras.layers.PReLU

add_device_only(globals())
