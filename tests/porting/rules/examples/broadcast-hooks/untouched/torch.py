import torch

model.train(True)
