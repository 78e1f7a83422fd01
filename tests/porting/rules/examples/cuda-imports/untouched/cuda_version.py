import torch.cuda

print(torch.__version__)
