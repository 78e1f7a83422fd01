from torch.nn.parallel import DataParallel as DP

model = DP(model).cuda()
