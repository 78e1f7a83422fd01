"""The table of the adapter's options against what its source says of them."""

from jumar.porting.npu.option_table import ADAPTER_OPTIONS

READ_FROM = {
    "b": """
        use_off_line enable_data_pre_proc mix_compile_mode lower_functional_ops
        dynamic_input in_out_pair_flag frozen_variable external_weight
        variable_format_optimize hcom_parallel hcom_multi_mode is_tailing_optimization
        enable_dump enable_dump_debug profiling_mode enable_compress_weight
        enable_graph_parallel
    """,
    "i": """
        deterministic iterations_per_loop graph_run_mode dynamic_node_type
        graph_exec_timeout stream_sync_timeout event_sync_timeout op_wait_timeout
        op_execute_timeout topo_sorting_mode atomic_clean_policy static_memory_policy
        session_device_id local_rank_id hccl_timeout task_index enable_exception_dump
        op_debug_level enable_small_channel
    """,
    "s": """
        precision_mode precision_mode_v2 modify_mixlist op_precision_mode op_select_implmode
        optypelist_for_implmode customize_dtypes jit_compile dynamic_graph_execute_mode
        dynamic_inputs_shape_range input_shape dynamic_dims in_out_pair const_input
        variable_placement insert_op_file graph_memory_max_size variable_memory_max_size
        memory_optimization_policy graph_slice local_device_list HCCL_algorithm job
        device_type soc_config es_cluster_config stream_max_parallel_num ac_parallel_enable
        dump_path dump_step dump_mode dump_debug_mode dump_data dump_layer op_debug_config
        debug_dir profiling_options auto_tune_mode aoe_mode work_path distribute_config
        aoe_config_file enable_scope_fusion_passes fusion_switch_file buffer_optimize
        compress_weight_conf op_compiler_cache_mode op_compiler_cache_dir
        graph_compiler_cache_dir experimental_logical_device_cluster_deploy_mode
        experimental_logical_device_id experimental_accelerate_train_mode
        experimental_model_deploy_mode experimental_model_deploy_devicelist
        resource_config_path graph_parallel_option_path
    """,
}
"""By field, the keys as `npu_attrs.cc` reads them: read independently of the table."""

DEFAULTS = {
    "deterministic": 0,
    "use_off_line": True,
    "enable_data_pre_proc": False,
    "mix_compile_mode": False,
    "iterations_per_loop": 1,
    "lower_functional_ops": False,
    "graph_run_mode": 1,
    "jit_compile": "auto",
    "dynamic_input": False,
    "dynamic_graph_execute_mode": "dynamic_execute",
    "in_out_pair_flag": True,
    "frozen_variable": False,
    "variable_placement": "Device",
    "external_weight": False,
    "graph_exec_timeout": 600000,
    "stream_sync_timeout": -1,
    "event_sync_timeout": -1,
    "atomic_clean_policy": 0,
    "static_memory_policy": 0,
    "hcom_parallel": True,
    "hcom_multi_mode": False,
    "is_tailing_optimization": False,
    "job": "localhost",
    "task_index": 0,
    "device_type": "default_device_type",
    "enable_dump": False,
    "enable_dump_debug": False,
    "dump_mode": "output",
    "dump_debug_mode": "all",
    "dump_data": "tensor",
    "enable_exception_dump": 2,
    "profiling_mode": False,
    "work_path": "./",
    "buffer_optimize": "l2_optimize",
    "enable_small_channel": 0,
    "enable_compress_weight": False,
    "experimental_logical_device_cluster_deploy_mode": "LB",
}
"""What holds without a key, in the same source."""


def test_every_key_is_read_from_the_adapters_field() -> None:
    fields = {key: field for field, keys in READ_FROM.items() for key in keys.split()}
    assert {key: option.field for key, option in ADAPTER_OPTIONS.items()} == fields


def test_defaults_match_the_adapter() -> None:
    given = {
        key: option.default
        for key, option in ADAPTER_OPTIONS.items()
        if option.default is not None and key != "profiling_options"
    }
    assert given == DEFAULTS
