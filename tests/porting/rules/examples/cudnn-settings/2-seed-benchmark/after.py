import torch.backends.cudnn as cudnn

if seed:
    pass
