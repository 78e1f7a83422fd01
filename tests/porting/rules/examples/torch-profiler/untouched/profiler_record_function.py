from torch.profiler import record_function
