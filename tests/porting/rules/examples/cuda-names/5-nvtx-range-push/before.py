import torch

torch.cuda.nvtx.range_push('step')
