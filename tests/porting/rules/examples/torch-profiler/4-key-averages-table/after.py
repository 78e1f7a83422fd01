from torch_npu.profiler import profile

with profile() as prof:
    pass
print(prof.key_averages().table())
