import torch
import torch_npu

for x, y in data:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
