"""Traces of events: those of torch.profiler and of Ascend, of any length."""
