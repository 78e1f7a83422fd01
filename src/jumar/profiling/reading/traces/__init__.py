"""Event traces of torch.profiler and Ascend tools, of any length."""
