from torch.backends import cudnn

was = cudnn.allow_tf32
