from torch.profiler import profile

with profile() as prof:
    pass
print(prof.key_averages().table())
