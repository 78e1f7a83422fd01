from torch_npu.profiler import profile, ProfilerActivity
from torch.profiler import record_function

with profile(activities=[ProfilerActivity.NPU]) as prof:
    with record_function('step'):
        pass
