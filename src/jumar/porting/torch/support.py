"""The APIs that torch_npu's list for PyTorch 2.13 marks as unsupported on all devices.

Names that other rules cover (torch.cuda, profiler, sparse tensors, DataParallel) are omitted, as
are listed members of other names (torch.optim.Adam.step) and functions that compute on the host
(torch.fft.fftfreq).
"""

RELEASE = "torch_npu 2.13"

UNSUPPORTED = frozenset(
    "torch.distributed.optim.DistributedOptimizer torch.distributed.tensor.parallel."  # noqa: SIM905
    "RowwiseParallel torch.export.export torch.export.load torch.export.save torch.from_dlpack "
    "torch.func.functionalize torch.func.hessian torch.func.jacfwd torch.func.jacrev "
    "torch.func.jvp torch.func.vjp torch.func.vmap torch.heaviside torch.linalg.ldl_factor "
    "torch.nanquantile torch.nested.masked_select torch.nested.narrow "
    "torch.nested.nested_tensor_from_jagged torch.nested.to_padded_tensor "
    "torch.nn.AdaptiveLogSoftmaxWithLoss torch.nn.AdaptiveMaxPool1d torch.nn.AdaptiveMaxPool2d "
    "torch.nn.AvgPool3d torch.nn.CosineEmbeddingLoss torch.nn.MaxPool1d torch.nn.MaxPool3d "
    "torch.nn.MaxUnpool3d torch.nn.MultiLabelMarginLoss torch.nn.RNN torch.nn.RNNCell "
    "torch.nn.RReLU torch.nn.ReflectionPad3d torch.nn.ReplicationPad3d "
    "torch.nn.functional.adaptive_max_pool1d torch.nn.functional.adaptive_max_pool2d "
    "torch.nn.functional.avg_pool3d torch.nn.functional.embedding_bag "
    "torch.nn.functional.gumbel_softmax torch.nn.functional.max_unpool3d "
    "torch.nn.functional.multilabel_soft_margin_loss torch.nn.functional.pdist "
    "torch.nn.functional.triplet_margin_loss "
    "torch.nn.functional.triplet_margin_with_distance_loss "
    "torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pack_sequence "
    "torch.nn.utils.rnn.pad_packed_sequence torch.poisson torch.quantize_per_channel "
    "torch.quantize_per_tensor torch.scatter_reduce torch.std_mean torch.unique_consecutive "
    "torch.utils.dlpack.from_dlpack torch.utils.dlpack.to_dlpack torch.var_mean".split()
)
