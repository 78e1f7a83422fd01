import torch

value = settings['cuda']
