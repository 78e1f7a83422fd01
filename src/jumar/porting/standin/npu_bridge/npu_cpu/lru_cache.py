"""The name of the embedding cache, which exists only on a device."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
