import torch.profiler as tp

handler = tp.tensorboard_trace_handler('log')
