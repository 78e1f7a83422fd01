"""Data about torch_npu: names, device strings, support."""
