from torch.amp import GradScaler as Scaler
import torch_npu

scaler = Scaler(init_scale=2.0 ** 12, enabled=on, device='npu')
