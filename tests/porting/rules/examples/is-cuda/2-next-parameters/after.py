import torch
import torch_npu

on = next(self.parameters()).is_npu
