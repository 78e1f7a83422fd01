import torch

if 'out of memory' in str(error):
    retry()
