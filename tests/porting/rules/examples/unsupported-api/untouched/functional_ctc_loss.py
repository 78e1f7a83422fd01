import torch

loss = torch.nn.functional.ctc_loss(a, b, c, d)  # not tf
