"""The life cycle of a device outside of sessions; a CPU needs no opening or closing."""

from tensorflow.python.ops import init_ops, variable_scope

from npu_bridge.estimator.npu import npu_scope, util
from npu_bridge_standin.option_checks import check_blocks
from npu_bridge_standin.record import record, refused_option
from npu_bridge_standin.signatures import add_device_only, device_only

_SATURATION = {"mode": 0}


def npu_resource_init(
    graph_run_mode=1,
    op_debug_level=0,
    enable_profiling=False,
    profiling_options=None,
    precision_mode=None,
    enable_scope_fusion_passes=None,
    enable_exception_dump=2,
    aoe_mode=None,
    work_path=None,
    op_compiler_cache_mode=None,
    op_compiler_cache_dir=None,
    debug_dir=None,
    hcom_multi_mode=False,
    distribute_config=None,
    aoe_config_file=None,
    precision_mode_v2=None,
):
    """Check the options and record them."""
    options = {name: value for name, value in locals().items() if value is not None}
    check_graph_run_mode(graph_run_mode)
    util.check_nonnegative_integer(enable_exception_dump, "enable_exception_dump")
    util.check_nonnegative_integer(op_debug_level, "op_debug_level")
    util.check_bool_type(enable_profiling, "enable_profiling")
    util.check_bool_type(hcom_multi_mode, "hcom_multi_mode")
    if enable_profiling and profiling_options is None:
        raise ValueError("profiling_options must be set if enable_profiling is True")
    if aoe_mode is not None:
        util.check_aoe_mode(aoe_mode)
        util.check_path(work_path or "./")
    modes = {name: ("s", options[name]) for name in _CHECKED_MODES if name in options}
    for problem in check_blocks([modes], environment={}):
        refused_option(problem.key, problem.value, problem.text)
    record("resource", call="npu_resource_init", options=options)


_CHECKED_MODES = ("precision_mode", "precision_mode_v2")


def check_graph_run_mode(graph_run_mode):
    """Raise unless the mode is 0 or 1."""
    util.check_nonnegative_integer(graph_run_mode, "graph_run_mode")
    if graph_run_mode > 1:
        raise ValueError("graph_run_mode must be 0 or 1, got {}".format(graph_run_mode))


def init_op_compiler_cache_mode(init, op_compiler_cache_mode):
    """Set an option in a dictionary, unless it is None."""
    _set(init, "ge.op_compiler_cache_mode", op_compiler_cache_mode)


def init_op_compiler_cache_dir(init, op_compiler_cache_dir):
    """Set an option in a dictionary, unless it is None."""
    _set(init, "ge.op_compiler_cache_dir", op_compiler_cache_dir)


def init_debug_dir(init, debug_dir):
    """Set an option in a dictionary, unless it is None."""
    _set(init, "ge.debugDir", debug_dir)


def _set(init, name, value):
    if value is not None:
        init[name] = value


def npu_resource_shutdown():
    """Record the call; nothing has to be closed."""
    record("resource", call="npu_resource_shutdown")


def npu_close():
    """Do nothing, since nothing has to be closed."""


def set_device_sat_mode(mode):
    """Set the handling of overflows; 1 turns them into infinities and NaN."""
    _SATURATION["mode"] = mode


def is_inf_nan_enabled():
    """Return whether overflows become infinities and NaN."""
    return _SATURATION["mode"] == 1


def init_rdma_pool(mem_size):
    """Only available on a device."""
    if not isinstance(mem_size, int):
        raise ValueError("mem_size must be int, got {!r}".format(mem_size))
    device_only("init_rdma_pool")()


def rdma_remote_register(remote_var_list):
    """Only available on a device."""
    _check_variables(remote_var_list)
    device_only("rdma_remote_register")()


def rdma_remote_init(remote_var_list, mem_size):
    """Only available on a device."""
    _check_variables(remote_var_list)
    if not isinstance(mem_size, int):
        raise ValueError("mem_size must be int, got {!r}".format(mem_size))
    device_only("rdma_remote_init")()


def _check_variables(remote_var_list):
    if not isinstance(remote_var_list, (tuple, list)):
        raise ValueError(
            "remote_var_list must be a tuple or list, got {!r}".format(remote_var_list)
        )


def get_var_addr_and_size(var_name):
    """Only available on a device."""
    if not isinstance(var_name, str):
        raise ValueError("var_name must be str, got {!r}".format(var_name))
    return device_only("get_var_addr_and_size")()


def get_rdma_cache(data_type, shape, name="rdma_w"):
    """Return a variable of zeros."""
    with npu_scope.npu_mem_type_scope():
        return variable_scope.get_variable(
            name=name, shape=shape, dtype=data_type, initializer=init_ops.zeros_initializer()
        )


add_device_only(globals())
