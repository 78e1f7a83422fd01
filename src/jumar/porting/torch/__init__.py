"""What is known of torch_npu: names, device strings, support."""
