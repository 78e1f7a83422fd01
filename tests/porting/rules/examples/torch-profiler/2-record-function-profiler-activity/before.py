from torch.profiler import profile, record_function, ProfilerActivity

with profile(activities=[ProfilerActivity.CUDA]) as prof:
    with record_function('step'):
        pass
