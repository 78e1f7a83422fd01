import torch

settings.allow_tf32 = True
