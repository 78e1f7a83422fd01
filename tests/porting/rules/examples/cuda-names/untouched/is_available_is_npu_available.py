import torch

if torch.cuda.is_available() or is_npu_available():
    pass
