import torch

class RNN:
    pass

RNN()
