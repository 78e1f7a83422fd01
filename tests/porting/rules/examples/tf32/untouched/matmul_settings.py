import torch

matmul = settings
matmul.allow_tf32 = False
