from torch.cuda.nvtx import range_push
