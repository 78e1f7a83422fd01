"""Tests that need a device other than the CPU: `pytest -m accelerator`."""
