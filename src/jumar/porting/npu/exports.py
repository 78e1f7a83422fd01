"""The names that `from npu_bridge.npu_init import *` brings in.

Source: `tf_adapter/python/npu_bridge/npu_init.py` of the repository Ascend/tensorflow, branch
master of December 2023, which has no `__all__`.
"""

NPU_INIT_NAMES = frozenset(
    (  # noqa: SIM905
        # Configuration.
        "NPURunConfig ProfilingConfig MemoryConfig DumpConfig DynamicInputConfig "
        # Estimator, hooks and callbacks.
        "NPUEstimator NPUEstimatorSpec NPUCheckpointSaverHook NPUOutputTensorHook "
        "NPUBroadcastGlobalVariablesHook SetIterationsVarHook TellMeStepOrLossHook NpuEmptyHook "
        "NPUBroadcastGlobalVariablesCallback "
        # Optimizers and loss scale.
        "NPUDistributedOptimizer KerasDistributeOptimizer npu_distributed_optimizer_wrapper "
        "NPUOptimizer npu_allreduce NPULossScaleOptimizer FixedLossScaleManager "
        "ExponentialUpdateLossScaleManager "
        # Modules.
        "npu_ops npu_unary_ops npu_rnn npu_scope npu_strategy keras_to_npu npu_plugin util "
        "hccl_ops npu_embedding "
        # TensorFlow's names, which leak through the star import.
        "tf os config_pb2 rewriter_config_pb2 RewriterConfig session session_run_hook backend "
        # Ranks.
        "create_group destroy_group get_rank_size get_local_rank_size get_rank_id "
        "get_local_rank_id get_world_rank_from_group_rank get_group_rank_from_world_rank "
        "set_split_strategy_by_idx set_split_strategy_by_size "
        # Functions.
        "npu_hooks_append npu_callbacks_append npu_config_proto npu_graph_options "
        "npu_optimizer_options npu_run_config_init set_keras_session_npu_config init_resource "
        "shutdown_resource close_session get_npu_rank_id get_npu_local_rank_id get_npu_rank_size "
        "get_npu_local_rank_size npu_keras_optimizer npu_tf_optimizer npu_clear_session "
        "experimental_options"
    ).split()
)
