from torch import nn
import torch.nn.functional as F

pool = nn.MaxPool3d(2)
y = F.gumbel_softmax(x)
