import torch
import torch_npu

model = torch.nn.Linear(2, 2).npu()
x = x.npu(args.gpu, non_blocking=True)
