from torch.backends import cudnn

cudnn.deterministic = True
