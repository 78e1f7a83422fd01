from torch.cuda import amp
