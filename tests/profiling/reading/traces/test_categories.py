"""Categories of every release and vendor in today's words."""

import pytest

from jumar.profiling.reading.traces.categories import category_of, device_category


@pytest.mark.parametrize(
    ("written", "category"),
    [
        *(("Operator", "cpu_op"), ("cpu_op", "cpu_op"), ("operators", "operators")),
        *((name, "kernel") for name in ("Kernel", "concurrent_kernel", "rocm_kernel_dispatch")),
        *((name, "kernel") for name in ("mtia_ccp_events", "hpu_op")),
        *((name, "gpu_memcpy") for name in ("Memcpy", "gpu_memcpy", "rocm_memory_copy")),
        *((name, "gpu_memset") for name in ("Memset", "gpu_memset")),
        *((name, "cuda_runtime") for name in ("Runtime", "xpu_runtime", "hip_runtime_api")),
        *((name, "cuda_runtime") for name in ("hip_api", "rocm_hsa_api")),
        *((name, "cuda_driver") for name in ("cuda_driver", "xpu_driver")),
        *(("Python", "python_function"), ("user annotation", "user_annotation")),
        ("Other_Thing", "Other_Thing"),
    ],
)
def test_category_is_recognised_by_any_of_its_names(written: str, category: str) -> None:
    assert category_of(written) == category


@pytest.mark.parametrize(
    ("process", "category"),
    [
        *(("GPU0", "kernel"), ("GPU 1234", "kernel"), ("COPY", "gpu_memcpy")),
        *(("GPU12345", ""), ("GPU", ""), ("CPU HIP API", ""), ("my COPY", "")),
    ],
)
def test_rocprof_process_is_a_device_only_by_its_full_name(process: str, category: str) -> None:
    assert device_category(process) == category
