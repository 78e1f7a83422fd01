from torch import nn
import torch_npu

class Net(nn.Module):
    def npu(self, device=None):
        return super().npu(device)
