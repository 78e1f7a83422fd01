import torch
import torch_npu

where = f"{'npu' if on else 'cpu'}:{rank}"
kinds = ['cpu', 'npu']
