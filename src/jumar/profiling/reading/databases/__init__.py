"""Databases of msprof and torch_npu."""
