import torch

class GradScaler:
    pass

scaler = GradScaler()
