import torch

double(3)
