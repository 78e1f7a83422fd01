import torch

settings.benchmark = True
