import torch

class Activity:
    CUDA = 1

print(Activity.CUDA)
