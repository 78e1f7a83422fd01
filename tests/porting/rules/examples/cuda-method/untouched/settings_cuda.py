import torch

settings = {'cuda': 1}
settings['cuda']
