import torch

torch.backends.mkldnn.matmul.fp32_precision = 'bf16'
