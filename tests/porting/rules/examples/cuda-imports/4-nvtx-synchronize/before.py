from torch.cuda import nvtx, synchronize

synchronize()
