import torch
import torch_npu

batch = list(map(torch.Tensor.npu, batch))
