from torch.amp import GradScaler as Scaler

scaler = Scaler(init_scale=2.0 ** 12, enabled=on)
