"""What is known about torch_npu: names, device strings, support."""
