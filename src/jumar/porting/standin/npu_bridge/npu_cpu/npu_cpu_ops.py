"""The names of host operators, which a CPU TensorFlow lacks."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
