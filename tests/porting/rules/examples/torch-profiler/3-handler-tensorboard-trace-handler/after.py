import torch.profiler as tp
import torch_npu

handler = torch_npu.profiler.tensorboard_trace_handler('log')
