import torch

on = next(self.parameters()).is_cuda
