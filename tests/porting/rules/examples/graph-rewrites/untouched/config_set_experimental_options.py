import torch

torch.config.set_experimental_options({'remapping': True})
