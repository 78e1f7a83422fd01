"""Operators of the matrix engine: their names, for they run on a device."""

from npu_bridge_standin.device_ops import device_only

deformable_conv2d = device_only("deformable_conv2d")
