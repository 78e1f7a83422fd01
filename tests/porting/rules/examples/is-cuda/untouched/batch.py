import torch

class Batch:
    def is_cuda(self):
        return False

print(batch.is_cuda)
