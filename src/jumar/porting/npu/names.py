"""The public names of each module of the real `npu_bridge`: ported code may use only these.

Recorded from the Python files below `tf_adapter/python/npu_bridge` of the repository
Ascend/tensorflow, branch master, commit 085a7b2e of 2023-12-15: the definitions in each file and
the imports of `npu_init`, except `gen_` handles and gradients of operators. The operators are those
registered in `tf_adapter/ops` of that commit. The two `hccl` modules are not in that repository;
their names are those that `npu_init` imports from them.
"""

_MODULES = {
    "npu_bridge": """
        helper npu_bridge_handle __version__ npu_estimator hccl_ops
    """,
    "npu_bridge.embedding": """
        EmbeddingAdagradOptimizer EmbeddingAdamOptimizer EmbeddingAdamWOptimizer
        EmbeddingRmspropOptimizer EmbeddingService EmbeddingSgdOptimizer es_initializer
    """,
    "npu_bridge.embedding.embedding_optimizer": """
        AdagradOptimizer AdamOptimizer AdamWOptimizer ExponentialDecayLR RmspropOptimizer
        SgdOptimizer exponential_decay_lr
    """,
    "npu_bridge.embedding.embedding_resource": """
        NpuEmbeddingResource
    """,
    "npu_bridge.embedding.embedding_service": """
        CounterFilter ESWorker EmbeddingVariableOption EsInitializer check_common_init_params
        es_initializer specified_ps_engine_scope
    """,
    "npu_bridge.embedding.embedding_table_map_policy": """
        AutoMergeTableMapPolicy BaseTableMapPolicy NoneTableMapPolicy compare_initializer
    """,
    "npu_bridge.embedding.tf_path": """
        path_on_tf
    """,
    "npu_bridge.estimator.npu.keras_to_npu": """
        model_to_npu_estimator
    """,
    "npu_bridge.estimator.npu.npu_callbacks": """
        BroadcastGlobalVariablesCallbackImpl NPUBroadcastGlobalVariablesCallback
        broadcast_global_variables
    """,
    "npu_bridge.estimator.npu.npu_common": """
        DeviceInfo JobConfig JobInfo NPUBasics
    """,
    "npu_bridge.estimator.npu.npu_config": """
        DumpConfig DynamicInputConfig ExperimentalConfig GraphMemoryOptimizeConfig MemoryConfig
        NPURunConfig NpuExecutePlacement ProfilingConfig decorator_tf_session
        set_npu_default_config
    """,
    "npu_bridge.estimator.npu.npu_convert_dropout": """
        dropout_call
    """,
    "npu_bridge.estimator.npu.npu_dynamic_rnn": """
        DYNAMIC_RNN_BIDIRECTION DYNAMIC_RNN_REDIRECTIONAL DYNAMIC_RNN_UNIDIRECTION DynamicAUGRU
        DynamicGRUV2 DynamicRNN
    """,
    "npu_bridge.estimator.npu.npu_estimator": """
        NPUEstimator NPUEstimatorSpec no_check_override
    """,
    "npu_bridge.estimator.npu.npu_hook": """
        NPUBroadcastGlobalVariablesHook NPUCheckpointSaverHook NPUInfeedOutfeedSessionHook
        NPULogOutfeedSessionHook NPUOutputTensorHook NPUShutDownHook SetIterationsVarHook
        TellMeStepOrLossHook broadcast_global_variables
    """,
    "npu_bridge.estimator.npu.npu_loss_scale_manager": """
        ExponentialUpdateLossScaleManager FixedLossScaleManager
    """,
    "npu_bridge.estimator.npu.npu_loss_scale_optimizer": """
        NPULossScaleOptimizer
    """,
    "npu_bridge.estimator.npu.npu_optimizer": """
        KerasDistributeOptimizer NPUDistributedOptimizer NPUOptimizer allreduce npu_allreduce
        npu_distributed_optimizer_wrapper reduce
    """,
    "npu_bridge.estimator.npu.npu_plugin": """
        check_graph_run_mode get_rdma_cache get_var_addr_and_size init_debug_dir
        init_op_compiler_cache_dir init_op_compiler_cache_mode init_rdma_pool is_inf_nan_enabled
        malloc_shared_memory npu_close npu_resource_init npu_resource_shutdown rdma_remote_init
        rdma_remote_register set_device_sat_mode
    """,
    "npu_bridge.estimator.npu.npu_rnn": """
        npu_dynamic_rnn
    """,
    "npu_bridge.estimator.npu.npu_saver": """
        NPUBulkSaverBuilder NPUSaver
    """,
    "npu_bridge.estimator.npu.npu_scope": """
        keep_dtype_scope npu_graph_slice_scope npu_mem_type_scope npu_optimizer_scope
        npu_qos_label_scope npu_recompute_scope npu_stage_scope npu_variable_scope
        npu_weight_prefetch_scope op_specified_engine_scope subgraph_multi_dims_scope
        without_npu_compile_scope
    """,
    "npu_bridge.estimator.npu.npu_strategy": """
        NPUExtended NPUStrategy
    """,
    "npu_bridge.estimator.npu.util": """
        ExperimentalConfig GradDivisionItem GraphMemoryOptimizeConfig IterationPerLoop
        add_grads_and_vars check_aoe_mode check_bool_type check_nonnegative_integer check_not_none
        check_path check_positive_integer check_profiling_options convert_bool_to_int
        create_or_get_var fair_division format_string get_all_grad_item get_gid_by_weight
        get_ranksize get_value global_dict_init keep_tensors_dtypes npu_compile register_func
        set_graph_exec_config set_iteration_per_loop set_op_input_tensor_multi_dims
        set_op_tensor_max_range set_op_tensor_max_size set_value variable_initializer_in_host
    """,
    "npu_bridge.estimator.npu_aicore_ops": """
        centralization dropout_v3 dropout_v4 fast_gelu_v2 layer_norm lru_cache_v2 nonzero
        nonzerowithvalue npu_aicore_ops prelu prod_env_mat_a prodforcesea prodvirialsea
        tabulatefusion tabulatefusiongrad tabulatefusionsea tabulatefusionseagrad
    """,
    "npu_bridge.estimator.npu_ops": """
        LARS LARSV2 NPUInit NPUShutdown adam_apply_one_assign adam_apply_one_with_decay_assign
        basic_lstm_cell channel_get_next dropout initialize_system k_means_centroids
        npu_onnx_graph_op outfeed_dequeue_op outfeed_enqueue_op scatter_elements shutdown_system
        stop_outfeed_dequeue_op
    """,
    "npu_bridge.estimator.npu_unary_ops": """
        npu_unary_ops
    """,
    "npu_bridge.experimental.dataset_ops": """
        MapAndBatchDataset MapDataset NpuUnaryDataset map map_and_batch
    """,
    "npu_bridge.experimental.file_constant": """
        file_constant
    """,
    "npu_bridge.experimental.get_shape": """
        getshape npu_aicore_ops
    """,
    "npu_bridge.experimental.hccl": """
        c_str get_actual_rank_size get_user_rank_id get_user_rank_size hccl_graph_adp_ctypes
    """,
    "npu_bridge.experimental.image": """
        decode_image
    """,
    "npu_bridge.hccl.hccl_ops": """
        all_to_all_v all_to_all_v_c allgather allreduce broadcast gather_all_to_all_v receive
        reduce reduce_scatter remote_read remote_ref_read remote_scatter_write remote_write send
    """,
    "npu_bridge.helper.helper": """
        get_gen_ops npu_bridge_handle version
    """,
    "npu_bridge.image.image_ops": """
        decode_and_crop_and_resize_jpeg decode_and_resize_jpeg
    """,
    "npu_bridge.npu_cpu.lru_cache": """
        LruCache
    """,
    "npu_bridge.npu_cpu.npu_cpu_ops": """
        batch_dilate_polys batch_enqueue dense_image_warp dequeue device_feature_mapping
        embedding_local_index embeddingrankid host_feature_mapping host_feature_mapping_export
        host_feature_mapping_import non_zero_with_value_shape ocr_detection_post_handle
        ocr_detection_pre_handle ocr_find_contours ocr_identify_pre_handle
        ocr_recognition_pre_handle randomchoicewithmask resize_and_clip_polys resize_v2
        warp_affine_v2
    """,
    "npu_bridge.npu_init": """
        DumpConfig DynamicInputConfig ExponentialUpdateLossScaleManager FixedLossScaleManager
        KerasDistributeOptimizer MemoryConfig NPUBroadcastGlobalVariablesCallback
        NPUBroadcastGlobalVariablesHook NPUCheckpointSaverHook NPUDistributedOptimizer
        NPUEstimator NPUEstimatorSpec NPULossScaleOptimizer NPUOptimizer NPUOutputTensorHook
        NPURunConfig NpuEmptyHook ProfilingConfig RewriterConfig SetIterationsVarHook
        TellMeStepOrLossHook backend close_session config_pb2 create_group decorator_tf_session
        destroy_group experimental_options get_group_rank_from_world_rank get_local_rank_id
        get_local_rank_size get_npu_local_rank_id get_npu_local_rank_size get_npu_rank_id
        get_npu_rank_size get_rank_id get_rank_size get_world_rank_from_group_rank hccl_ops
        init_resource keras_to_npu npu_allreduce npu_callbacks_append npu_clear_session
        npu_config_proto npu_distributed_optimizer_wrapper npu_embedding npu_graph_options
        npu_hooks_append npu_keras_optimizer npu_ops npu_optimizer_options npu_plugin npu_rnn
        npu_run_config_init npu_scope npu_strategy npu_tf_optimizer npu_unary_ops os
        rewriter_config_pb2 session session_run_hook set_keras_session_npu_config
        set_split_strategy_by_idx set_split_strategy_by_size shutdown_resource tf util
    """,
    "npu_bridge.tbe.npu_cube_ops": """
        deformable_conv2d
    """,
    "npu_bridge.tbe.npu_vector_ops": """
        PReLU lamb_apply_optimizer_assign lamb_apply_weight_assign
    """,
    "hccl.manage.api": """
        create_group destroy_group get_group_rank_from_world_rank get_local_rank_id
        get_local_rank_size get_rank_id get_rank_size get_world_rank_from_group_rank
    """,
    "hccl.split.api": """
        set_split_strategy_by_idx set_split_strategy_by_size
    """,
}

_OPERATORS = """
    adam_apply_one_assign adam_apply_one_with_decay_assign adp_get_next ascend_anti_quant
    ascend_dequant ascend_quant ascend_weight_quant basic_lstm_cell basic_lstm_cell_c_state_grad
    basic_lstm_cell_input_grad basic_lstm_cell_weight_grad batch_dilate_polys batch_enqueue
    cache_add cache_all_index_to_local cache_remote_index_to_local centralization decode_image_v3
    deformable_offsets deformable_offsets_grad dense_image_warp dense_image_warp_grad dequeue
    device_queue_dataset dp_group_dataset dpop drop_out_do_mask drop_out_do_mask_v3
    drop_out_gen_mask drop_out_gen_mask_v3 drop_out_gen_mask_v4 dynamic_augru dynamic_augru_grad
    dynamic_get_next_v2 dynamic_gru_v2 dynamic_gru_v2_grad dynamic_rnn dynamic_rnn_grad
    dynamic_rnn_v2 embedding_apply_ada_grad embedding_apply_adam embedding_apply_adam_w
    embedding_apply_rmsprop embedding_apply_sgd embedding_compute_var_export
    embedding_compute_var_import embedding_feature_mapping embedding_local_index embedding_rank_id
    embedding_table_export embedding_table_find embedding_table_find_and_init
    embedding_table_import exponential_decay_lr fake_remote_lookup_uniqued fast_gelu
    fast_gelu_grad fast_gelu_v2 feature_mapping_export feature_mapping_import file_constant
    fused_layer_norm fused_layer_norm_grad ge_op gelu gelu_grad geop_dataset get_next
    get_next_from_queue get_shape hcom_all_gather hcom_all_reduce hcom_all_to_all_v
    hcom_all_to_all_vc hcom_broadcast hcom_gather_all_to_all_v hcom_receive hcom_reduce
    hcom_reduce_scatter hcom_remote_read hcom_remote_ref_read hcom_remote_scatter_write
    hcom_remote_write hcom_send host_feature_mapping host_queue_dataset init_embedding_hashmap
    init_partition_map k_means_centroids k_means_centroids_v2 lamb_apply_optimizer_assign
    lamb_apply_weight_assign lars lars_v2 load_and_execute_om log_time_stamp lru_cache
    lru_cache_v2 non_zero non_zero_with_value non_zero_with_value_shape npu_alloc_float_status
    npu_clear_float_status npu_clear_float_status_v2 npu_get_float_status npu_get_float_status_v2
    npu_init npu_map_and_batch_dataset npu_map_dataset npu_onnx_graph_op npu_shutdown
    ocr_detection_post_handle ocr_detection_pre_handle ocr_find_contours ocr_identify_pre_handle
    ocr_recognition_pre_handle outfeed_dequeue_op outfeed_enqueue_op p_relu p_relu_grad
    prod_env_mat_a prod_force_se_a prod_virial_se_a queue_data queue_dataset
    random_choice_with_mask resize_and_clip_polys resize_v2 scatter_elements scatter_elements_v2
    table_to_resource tabulate_fusion tabulate_fusion_grad tabulate_fusion_se_a
    tabulate_fusion_se_a_grad uninit_embedding_hashmap uninit_partition_map warp_affine_v2
"""

NPU_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(names.split()) for module, names in _MODULES.items()
}
"""The public names of each module."""

NPU_OPERATORS = frozenset(_OPERATORS.split())
"""Operators, which are attributes of the handles below: `npu_unary_ops.gelu`."""

OPERATOR_HANDLES = frozenset(
    {
        "npu_bridge.npu_bridge_handle",
        "npu_bridge.helper.helper.npu_bridge_handle",
        "npu_bridge.estimator.npu_unary_ops.npu_unary_ops",
        "npu_bridge.estimator.npu_aicore_ops.npu_aicore_ops",
    }
)

_RENAMED = {
    "npu_bridge.npu_init.npu_embedding": "npu_bridge.embedding",
    "npu_bridge.npu_init.npu_unary_ops": "npu_bridge.estimator.npu_unary_ops.npu_unary_ops",
}
"""Names in `npu_init` that differ from the module or handle they refer to."""

_FOREIGN = frozenset(
    {"tf", "os", "config_pb2", "rewriter_config_pb2", "RewriterConfig", "session"}
    | {"session_run_hook", "backend"}
)
"""Names that `npu_init` re-exports from elsewhere; any attribute of them is accepted."""


def is_npu_name(dotted: str) -> bool:
    """Whether a name is a module or public name of the real package.

    Imported modules are followed, such as `npu_bridge.npu_init.util` in
    `npu_bridge.npu_init.util.set_iteration_per_loop`; attributes of classes are not recorded.

    Args:
        dotted: The full_name name, starting with `npu_bridge` or `hccl`.
    """
    parts = dotted.split(".")
    if any(module == dotted or module.startswith(dotted + ".") for module in NPU_NAMES):
        return True
    for end in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:end])
        if module in NPU_NAMES:
            return _is_name_of(module, parts[end], parts[end + 1 :])
    return False


def _is_name_of(module: str, name: str, rest: list[str]) -> bool:
    if name not in NPU_NAMES[module]:
        return False
    if not rest:
        return True
    full_name = f"{module}.{name}"
    if module == "npu_bridge.npu_init" and name in _FOREIGN:
        return True
    target = _RENAMED.get(full_name, full_name)
    if target in OPERATOR_HANDLES:
        return len(rest) == 1 and rest[0] in NPU_OPERATORS
    if target not in NPU_NAMES:
        target = next(
            (module_name for module_name in NPU_NAMES if module_name.endswith("." + name)), ""
        )
    return bool(target) and is_npu_name(".".join([target, *rest]))
