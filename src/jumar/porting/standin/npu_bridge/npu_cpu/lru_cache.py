"""A cache of embeddings: its name, for it lives on a device."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
