import torch

trainer = Trainer(benchmark=True)
