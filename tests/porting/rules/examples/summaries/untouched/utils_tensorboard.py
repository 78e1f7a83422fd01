from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter()
writer.add_scalar('loss', 1)
