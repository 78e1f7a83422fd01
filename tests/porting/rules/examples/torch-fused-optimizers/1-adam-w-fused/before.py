import torch

opt = torch.optim.AdamW(model.parameters(), fused=True)
