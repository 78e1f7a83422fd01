import torch.nn.functional as F  # tf

x = F.dropout(x, 0.5)
