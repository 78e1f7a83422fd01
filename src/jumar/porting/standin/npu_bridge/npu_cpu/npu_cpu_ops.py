"""Operators on the host: their names, for a CPU TensorFlow has none of them."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
