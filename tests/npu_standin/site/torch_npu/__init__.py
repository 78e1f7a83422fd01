"""What jumar asks of `torch_npu`, on the stand-in device. Only names that the real package has."""

import os

import torch

if torch._C._get_privateuse1_backend_name() != "npu":
    torch.ops.load_library(os.environ["NPU_STANDIN_LIBRARY"])
    torch.utils.rename_privateuse1_backend("npu")

import torch_npu.distributed
import torch_npu.npu

if not hasattr(torch, "npu"):
    torch._register_device_module("npu", torch_npu.npu)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    torch_npu.distributed._register()

__version__ = torch.__version__.partition("+")[0]
