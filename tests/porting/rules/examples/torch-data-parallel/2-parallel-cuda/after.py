from torch.nn.parallel import DataParallel as DP
import torch_npu

model = DP(model).npu()
