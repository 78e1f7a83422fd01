"""PyTorch rules that only report."""

import ast
from dataclasses import replace

from jumar.porting.rewriting import Case, Text, report
from jumar.porting.rules.torch.conditions import (
    casts_to_double,
    continues_without_import,
    is_complex,
    is_cuda_error_text,
    is_direct_reference,
    is_not_assigned_name,
    is_read,
    is_sparse,
)
from jumar.porting.torch.support import RELEASE, UNSUPPORTED

_AMP = Case(
    imports=("apex.amp",),
    en="on an NPU, apex.amp is part of Ascend's own build of apex",
    zh="NPU 上的 apex.amp 来自昇腾适配版 apex",
    todo_en="install apex for Ascend (which also accepts combine_grad=True), or use torch.amp with "
    "torch.amp.GradScaler(device='npu')",
    todo_zh="安装昇腾适配版 apex（支持 combine_grad=True），或改用 torch.amp 与 "
    "torch.amp.GradScaler(device='npu')",
)
_FLOAT64 = Case(
    references=("torch.float64", "torch.double", "torch.DoubleTensor"),
    when=(is_read,),
    en="NPUs have no float64 units: float64 kernels are missing or run slowly on the AI CPU",
    zh="NPU 没有 float64 计算单元：相关算子缺失，或在 AI CPU 上缓慢执行",
    todo_en="use float32, or move this part to the CPU",
    todo_zh="改用 float32，或将该部分放到 CPU 上计算",
    severity="speed",
    confidence="likely",
)


report(
    "apex",
    title=Text(en="NVIDIA apex", zh="NVIDIA apex"),
    source="Ascend/apex; torch_npu/optim of Ascend/pytorch",
    language="torch",
    cases=(
        _AMP,
        Case(
            imports=("apex.parallel",),
            en="apex.parallel is written for NCCL and CUDA",
            zh="apex.parallel 基于 NCCL 与 CUDA 实现",
            todo_en="use torch.nn.parallel.DistributedDataParallel and torch.nn.SyncBatchNorm",
            todo_zh="改用 torch.nn.parallel.DistributedDataParallel 与 torch.nn.SyncBatchNorm",
            severity="blocking",
            look_if=continues_without_import,
        ),
        Case(
            imports=("apex.optimizers",),
            en="apex's fused optimizers are CUDA kernels",
            zh="apex 的融合优化器是 CUDA 核",
            todo_en="use torch_npu.optim.NpuFusedAdam or another NpuFused optimizer, or "
            "apex.optimizers of apex for Ascend",
            todo_zh="改用 torch_npu.optim.NpuFusedAdam 等，或昇腾适配版 apex 的 apex.optimizers",
            severity="blocking",
            look_if=continues_without_import,
        ),
        Case(
            imports=("apex.normalization",),
            en="apex's layer norms are CUDA kernels",
            zh="apex 的归一化层是 CUDA 核",
            todo_en="use torch.nn.LayerNorm, or torch_npu.npu_rms_norm",
            todo_zh="改用 torch.nn.LayerNorm 或 torch_npu.npu_rms_norm",
            severity="blocking",
            look_if=continues_without_import,
        ),
        Case(
            imports=("apex.*",),
            en="this part of apex is a CUDA extension",
            zh="apex 的该部分是 CUDA 扩展",
            todo_en="use PyTorch's implementation",
            todo_zh="改用 PyTorch 自带实现",
            severity="blocking",
            look_if=continues_without_import,
        ),
        replace(_AMP, imports=("apex",)),
    ),
)


report(
    "torch-compilers",
    title=Text(en="torch.compile and TorchScript", zh="torch.compile 与 TorchScript"),
    source="API support list of Ascend/pytorch for PyTorch 2.13 (torch.compile); transfer_to_npu",
    language="torch",
    cases=(
        Case(
            references=("torch.compile",),
            when=(is_not_assigned_name,),
            en="torch.compile generates Triton code by default, which an NPU runs only with "
            "triton-ascend",
            zh="torch.compile 默认生成 Triton 代码，NPU 上需要 triton-ascend",
            todo_en="train eagerly first; then try backend=torchair.get_npu_backend() or "
            "backend='npugraphs'",
            todo_zh="先用 eager 模式训练；之后再尝试 backend=torchair.get_npu_backend() 或 "
            "backend='npugraphs'",
            severity="speed",
        ),
        Case(
            references=("torch.jit.script", "torch.jit.script_method"),
            when=(is_not_assigned_name,),
            en="TorchScript runs on an NPU without CUDA's fuser: code that was fused is slower",
            zh="TorchScript 在 NPU 上没有 CUDA 融合器，原先融合的部分会变慢",
            todo_en="compare outputs and speed with the plain function, and drop the decorator "
            "if it does not help",
            todo_zh="与普通函数比较输出与速度，无收益时去掉该装饰器",
            severity="speed",
        ),
        Case(
            references=(
                "torch.jit.fuser",
                "torch._C._jit_set_nvfuser_enabled",
                "torch._C._jit_override_can_fuse_on_gpu",
                "torch._C._jit_set_texpr_fuser_enabled",
                "torch._C._jit_set_profiling_executor",
                "torch._C._jit_set_profiling_mode",
            ),
            when=(is_not_assigned_name,),
            en="this selects a CUDA fuser",
            zh="此处选择的是 CUDA 融合器",
            todo_en="remove it",
            todo_zh="删除",
        ),
    ),
)


report(
    "torch-complex",
    title=Text(en="Complex tensors", zh="复数张量"),
    source="op_plugin_functions.yaml of Ascend/op-plugin",
    language="torch",
    cases=(
        Case(
            nodes=(ast.Attribute,),
            when=(is_complex,),
            en="few operators have complex kernels on an NPU; the others run on the CPU or fail",
            zh="NPU 上只有少数算子支持复数类型，其余会回退到 CPU 或报错",
            todo_en="compute with real and imaginary parts, or keep this part on the CPU",
            todo_zh="改为实部与虚部分别计算，或将该部分保留在 CPU 上",
            confidence="likely",
        ),
    ),
)


report(
    "torch-data-parallel",
    title=Text(
        en="DataParallel has to become DistributedDataParallel", zh="DataParallel 需改为 DDP"
    ),
    source="API support list of Ascend/pytorch for PyTorch 2.13 (torch.nn)",
    language="torch",
    cases=(
        Case(
            calls=("torch.nn.DataParallel", "torch.nn.parallel.data_parallel"),
            en="torch_npu does not support DataParallel: one process drives one NPU",
            zh="torch_npu 不支持 DataParallel：一个进程对应一张 NPU",
            todo_en="start one process per device with torchrun and wrap the model in "
            "torch.nn.parallel.DistributedDataParallel; on a single NPU, omit the wrapper",
            todo_zh="用 torchrun 每卡启动一个进程，并使用 "
            "torch.nn.parallel.DistributedDataParallel；单卡时去掉该封装",
            severity="blocking",
        ),
    ),
)


report(
    "torch-error-texts",
    title=Text(en="Texts of CUDA errors", zh="CUDA 报错文本"),
    source="NPUCachingAllocator.cpp of Ascend/pytorch",
    language="torch",
    cases=(
        Case(
            nodes=(ast.Constant,),
            when=(is_cuda_error_text,),
            en="an NPU's errors have different texts: 'NPU out of memory', and error codes "
            "of ACL and HCCL",
            zh="NPU 的报错文本不同：'NPU out of memory'，以及 ACL、HCCL 错误码",
            todo_en="catch torch.OutOfMemoryError, or match only 'out of memory'",
            todo_zh="捕获 torch.OutOfMemoryError，或只匹配 'out of memory'",
            confidence="likely",
        ),
    ),
)


report(
    "torch-float64",
    title=Text(en="float64 on an NPU", zh="NPU 上的 float64"),
    source="transfer_to_npu of Ascend/pytorch (DoubleTensor becomes FloatTensor)",
    language="torch",
    cases=(
        _FLOAT64,
        replace(_FLOAT64, references=(), nodes=(ast.Call,), when=(casts_to_double,)),
    ),
)


report(
    "torch-sparse",
    title=Text(en="Sparse tensors", zh="稀疏张量"),
    source="API support list of Ascend/pytorch for PyTorch 2.13 (torch.sparse); Ascend/op-plugin",
    language="torch",
    cases=(
        Case(
            nodes=(ast.Call,),
            when=(is_sparse,),
            en="few operators accept sparse tensors on an NPU, and only in the COO layout",
            zh="NPU 上只有少数算子支持稀疏张量，且仅支持 COO 格式",
            todo_en="use dense tensors, index_add_ or scatter, or keep this part on the CPU",
            todo_zh="改用稠密张量、index_add_ 或 scatter，或将该部分保留在 CPU 上",
            confidence="likely",
        ),
    ),
)


report(
    "torch-support",
    title=Text(en="APIs that torch_npu does not support", zh="torch_npu 不支持的 API"),
    source="API support list of Ascend/pytorch for PyTorch 2.13",
    language="torch",
    cases=(
        Case(
            references=tuple(sorted(UNSUPPORTED)),
            when=(is_direct_reference,),
            en=f"the API list of {RELEASE} marks {{name}} as unsupported",
            zh=f"{RELEASE} 的 API 支持列表中 {{name}} 标注为不支持",
            todo_en="try it with TORCH_NPU_FALLBACK_CPU_DISABLE unset, and look for warnings about "
            "a fallback to the CPU; if it is slow or fails, use other operators",
            todo_zh="先运行并观察是否有回退到 CPU 的告警（不要设置 "
            "TORCH_NPU_FALLBACK_CPU_DISABLE）；若很慢或报错，用其他算子实现",
            confidence="likely",
        ),
    ),
)
