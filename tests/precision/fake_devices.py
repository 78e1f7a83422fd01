"""Result dtypes of operators under autocast on devices this machine need not have.

Fake tensors carry a device and its dispatch keys but no memory, so torch's dispatcher does for
them what it would do for real ones. The NPU is the PrivateUse1 device, without a native
autocast list; torch_npu and core torch register their fallback for it in C++.
"""

import json
import sys
import types
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from jumar.precision.autocast_lists import install
from jumar.precision.modes import find_mode
from jumar.precision.oplist import default_lists, treatments
from tests.precision.op_calls import CALLS, maker


def become_npu() -> torch.library.Library:
    """Give PrivateUse1 the name npu, and what core torch asks of such a device."""
    torch.utils.rename_privateuse1_backend("npu")
    module = types.ModuleType("npu")
    module.is_available = lambda: True  # type: ignore[attr-defined]
    module.is_initialized = lambda: True  # type: ignore[attr-defined]
    module._is_in_bad_fork = lambda: False  # type: ignore[attr-defined]
    module.device_count = lambda: 1  # type: ignore[attr-defined]
    module.current_device = lambda: 0  # type: ignore[attr-defined]
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]  # type: ignore[attr-defined]
    torch._register_device_module("npu", module)
    library = torch.library.Library("_", "IMPL")
    library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    return library


def result_dtypes(
    device: str, given: torch.dtype, low: torch.dtype = torch.bfloat16
) -> dict[str, str]:
    """The result dtype of each call of `CALLS` in a region, by the name of its operator."""
    result: dict[str, str] = {}
    with FakeTensorMode(allow_non_fake_inputs=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # torch.autocast switches itself off where there is no such device.
        torch.set_autocast_enabled(device, True)
        torch.set_autocast_dtype(device, low)
        torch.autocast_increment_nesting()
        try:
            for name, call in CALLS.items():
                result[name] = str(call(maker(device, given)).dtype)
        finally:
            torch.autocast_decrement_nesting()
            torch.clear_autocast_cache()
            torch.set_autocast_enabled(device, False)
    return result


def main() -> None:
    """Print, as JSON, the dtypes in a mode on the NPU for low and for fp32 inputs."""
    fallback = become_npu()
    lists = install("npu", treatments(find_mode(sys.argv[1]).form, default_lists()))
    print(
        json.dumps(
            {str(given): result_dtypes("npu", given) for given in (torch.bfloat16, torch.float32)}
        )
    )
    lists.close()
    del fallback


if __name__ == "__main__":
    main()
