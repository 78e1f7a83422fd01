"""Report imports of packages that need CUDA."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.script.expressions import imported_names
from jumar.porting.torch.scripts import guard, may_use_torch

_REMOVE = Text(en="remove the code that uses it on an NPU", zh="在 NPU 上去掉相关用法")
_ATTENTION = Text(
    en="use torch_npu.npu_fusion_attention, or torch.nn.functional.scaled_dot_product_attention",
    zh="改用 torch_npu.npu_fusion_attention 或 torch.nn.functional.scaled_dot_product_attention",
)
_KERNELS = Text(
    en="implement the operator with PyTorch's operators, or in Ascend C, built with "
    "torch_npu.utils.cpp_extension.NpuExtension",
    zh="用 PyTorch 自带算子实现，或用 Ascend C 编写并通过 "
    "torch_npu.utils.cpp_extension.NpuExtension 编译",
)
_PACKAGES = {
    "torch.utils.cpp_extension": _KERNELS,
    "triton": Text(
        en="install triton-ascend, or implement the kernel with PyTorch's operators",
        zh="安装 triton-ascend，或改用 PyTorch 算子实现",
    ),
    "flash_attn": _ATTENTION,
    "flash_attn_interface": _ATTENTION,
    "xformers": _ATTENTION,
    "bitsandbytes": Text(
        en="use an optimizer of torch.optim, and msmodelslim for quantisation",
        zh="改用 torch.optim 的优化器；量化使用 msmodelslim",
    ),
    "cupy": Text(en="use torch or numpy", zh="改用 torch 或 numpy"),
    "pycuda": _KERNELS,
    "numba.cuda": _KERNELS,
    "pynvml": Text(
        en="use torch.npu.mem_get_info and torch.npu.utilization, or npu-smi info",
        zh="改用 torch.npu.mem_get_info、torch.npu.utilization 或 npu-smi info",
    ),
    "nvidia.dali": Text(en="load data with torch.utils.data", zh="改用 torch.utils.data 加载数据"),
    "tensorrt": Text(en="convert with ATC and run with ACL", zh="用 ATC 转换模型并通过 ACL 推理"),
    "torch_tensorrt": _REMOVE,
    "torch2trt": _REMOVE,
    "transformer_engine": _REMOVE,
    "spconv": _REMOVE,
    "MinkowskiEngine": _REMOVE,
    "torch_scatter": Text(
        en="use Tensor.scatter_reduce or index_add_",
        zh="改用 Tensor.scatter_reduce 或 index_add_",
    ),
    "deep_ep": _REMOVE,
    "deep_gemm": _REMOVE,
}
_KERNEL_PACKAGES = ("pycuda",)
"""Packages that are reported even in scripts that do not use PyTorch."""
_WHY = Remark(en="{name} needs CUDA", zh="{name} 依赖 CUDA", severity="blocking")
_GUARDED = Remark(
    en="{name} needs CUDA; the script seems to work without it",
    zh="{name} 依赖 CUDA；脚本在缺少该包时似乎仍可运行",
)
_CONDITIONAL = Remark(
    en="{name} needs CUDA; it is only imported under a condition",
    zh="{name} 依赖 CUDA；仅在满足条件时导入",
)
_IN_FUNCTION = Remark(
    en="{name} needs CUDA: calling this function fails on an NPU",
    zh="{name} 依赖 CUDA：在 NPU 上调用该函数会失败",
    severity="blocking",
)
_BY_GUARD = {
    "try": _GUARDED,
    "condition": _CONDITIONAL,
    "function": _IN_FUNCTION,
    None: _WHY,
}


@rule(
    "torch-packages",
    title=Text(en="Packages and extensions that need CUDA", zh="依赖 CUDA 的软件包与扩展"),
    source="documents of these packages; op-plugin (npu_fusion_attention); triton-ascend",
    language="torch",
    nodes=(ast.Import, ast.ImportFrom),
)
def torch_packages(node: ast.Import | ast.ImportFrom, view: View) -> Changes:
    """Report the import, with a replacement for the package."""
    name = _cuda_package(node, view)
    if name is None or not (
        name.startswith("torch") or name in _KERNEL_PACKAGES or may_use_torch(view.module)
    ):
        return
    remark = _BY_GUARD[guard(view, node)].filled(name=name)
    yield view.notice(node, remark, todo=_PACKAGES[name])


def _cuda_package(node: ast.Import | ast.ImportFrom, view: View) -> str | None:
    if isinstance(node, ast.ImportFrom) and view.module.project.find(
        node.module or "", view.module.path
    ):
        return None
    for module in imported_names(node):
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            if name in _PACKAGES:
                return name
    return None
