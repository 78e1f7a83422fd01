'torch.cuda.FloatTensor'

import torch
