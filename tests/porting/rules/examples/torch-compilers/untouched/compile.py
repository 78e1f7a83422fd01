import torch

model.compile()
