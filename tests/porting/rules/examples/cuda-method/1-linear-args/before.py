import torch

model = torch.nn.Linear(2, 2).cuda()
x = x.cuda(args.gpu, non_blocking=True)
