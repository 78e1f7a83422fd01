import torch.backends.cudnn as cudnn

if seed:
    cudnn.benchmark = False
