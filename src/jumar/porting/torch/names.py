"""The names that torch_npu has in place of those of `torch.cuda`.

They are the names bound in `torch_npu.npu` in the wheels of releases 2.6.0 and 2.13.0; a test
compares them with the lists recorded in tests/npu_standin.
"""

NPU_NAMES = frozenset(
    "BFloat16Storage BoolStorage ByteStorage CharStorage DoubleStorage Event ExternalEvent "  # noqa: SIM905
    "FloatStorage HalfStorage IntStorage LongStorage MemPool ShortStorage Stream StreamContext "
    "_get_device_index _is_in_bad_fork _lazy_call _lazy_init _sanitizer amp "
    "caching_allocator_alloc caching_allocator_delete can_device_access_peer "
    "change_current_allocator current_blas_handle current_device current_stream "
    "default_generators default_stream device device_count device_of empty_cache "
    "get_allocator_backend get_device_capability get_device_name get_device_properties "
    "get_rng_state get_rng_state_all get_sync_debug_mode graph graph_pool_handle graphs init "
    "initial_seed is_available is_bf16_supported is_current_stream_capturing is_initialized "
    "make_graphed_callables manual_seed manual_seed_all max_memory_allocated max_memory_cached "
    "max_memory_reserved mem_get_info memory memory_allocated memory_cached memory_reserved "
    "memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary random "
    "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached "
    "reset_peak_memory_stats seed seed_all set_device set_per_process_memory_fraction "
    "set_rng_state set_rng_state_all set_stream set_sync_debug_mode stream streams synchronize "
    "use_mem_pool utilization".split()
)
"""Names of `torch.cuda` that both releases have as well."""

NEWER_NAMES = frozenset(
    "ExternalStream get_per_process_memory_fraction host_memory_stats "  # noqa: SIM905
    "host_memory_stats_as_nested_dict ipc_collect reset_accumulated_host_memory_stats "
    "reset_peak_host_memory_stats".split()
)
"""Names of `torch.cuda` that 2.13.0 has and 2.6.0 does not."""

TENSOR_TYPES = frozenset(
    "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor "  # noqa: SIM905
    "IntTensor LongTensor ShortTensor".split()
)
"""Legacy tensor types; torch_npu creates them in C++ when it is imported."""

RENAMED = {
    "CUDAGraph": "NPUGraph",
    "CUDAPluggableAllocator": "NPUPluggableAllocator",
}
SUBMODULES = frozenset({"memory", "random", "streams", "graphs", "_sanitizer"})
"""Submodules that both packages have, and whose functions both export themselves."""

AMP_NAMES = frozenset(
    {"autocast", "GradScaler", "custom_fwd", "custom_bwd", "autocast_mode", "grad_scaler", "common"}
)

PROFILER_NAMES = frozenset(
    {
        "profile",
        "ProfilerActivity",
        "ProfilerAction",
        "schedule",
        "tensorboard_trace_handler",
        "supported_activities",
    }
)
"""Names of `torch.profiler` that `torch_npu.profiler` has as well."""


def npu_counterpart(dotted: str) -> str | None:
    """The name of `torch.cuda.DOTTED` below `torch.npu`, or None if there is none.

    Args:
        dotted: A name below `torch.cuda`, such as `amp.autocast`; empty for the module itself.
    """
    if not dotted:
        return ""
    first, _, rest = dotted.partition(".")
    if first == "amp" and rest:
        return dotted if rest.partition(".")[0] in AMP_NAMES else None
    if first in RENAMED:
        return f"{RENAMED[first]}.{rest}" if rest else RENAMED[first]
    exists = first in NPU_NAMES or first in NEWER_NAMES or first in TENSOR_TYPES
    return dotted if exists else None
