import torch

torch.nn.utils.clip_grad_norm_(parameters, 5.0)
