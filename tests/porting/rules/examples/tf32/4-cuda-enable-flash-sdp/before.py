import torch

torch.backends.cuda.enable_flash_sdp(True)
