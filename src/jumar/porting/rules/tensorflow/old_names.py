"""TensorFlow's function names before 1.0, and their names in 1.15."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class OldFunction:
    """A function as it was before 1.0.

    Args:
        current_name: Its name in 1.15, below `tensorflow.`; empty if it is unchanged.
        order: Current names of its parameters in the old order, if the order has changed:
            positional arguments then get a keyword.
        renamed: Current names of parameters, by their old names.
        max_positional: Number of positional arguments that keep their meaning; -1 for all.
        removed: Names of parameters that no longer exist.
    """

    current_name: str = ""
    order: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    max_positional: int = -1
    removed: tuple[str, ...] = ()


_RENAMED = {
    "complex_abs": "abs",
    "concat_v2": "concat",
    "image.per_image_whitening": "image.per_image_standardization",
    "inv": "reciprocal",
    "listdiff": "setdiff1d",
    "merge_all_summaries": "summary.merge_all",
    "merge_summary": "summary.merge",
    "mul": "multiply",
    "neg": "negative",
    "nn.bidirectional_rnn": "nn.static_bidirectional_rnn",
    "nn.rnn": "nn.static_rnn",
    "nn.rnn_cell.EmbeddingWrapper": "contrib.rnn.EmbeddingWrapper",
    "nn.seq2seq": "contrib.legacy_seq2seq",
    "nn.state_saving_rnn": "nn.static_state_saving_rnn",
    "pack": "stack",
    "sub": "subtract",
    "train.SummaryWriter": "summary.FileWriter",
    "unpack": "unstack",
}
"""Current names of functions whose arguments have not changed."""
_BATCHED = (
    *("cholesky", "cholesky_solve", "fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"),
    *("matrix_band_part", "matrix_determinant", "matrix_diag", "matrix_diag_part"),
    *("matrix_inverse", "matrix_set_diag", "matrix_solve", "matrix_solve_ls", "matrix_transpose"),
    *("matrix_triangular_solve", "self_adjoint_eig", "self_adjoint_eigvals"),
)
"""Functions that had a second form for batches, `batch_...`."""

OLD: dict[str, OldFunction] = {
    **{
        f"tensorflow.{name}": OldFunction(current_name=current)
        for name, current in _RENAMED.items()
    },
    **{f"tensorflow.batch_{name}": OldFunction(current_name=name) for name in _BATCHED},
    "tensorflow.batch_matmul": OldFunction(
        current_name="matmul",
        renamed={"x": "a", "y": "b", "adj_x": "adjoint_a", "adj_y": "adjoint_b"},
        max_positional=2,
    ),
    "tensorflow.select": OldFunction(current_name="where", renamed={"t": "x", "e": "y"}),
    "tensorflow.scalar_summary": OldFunction(
        current_name="summary.scalar",
        renamed={"tags": "name", "values": "tensor"},
        max_positional=3,
        removed=("name",),
    ),
    "tensorflow.histogram_summary": OldFunction(
        current_name="summary.histogram",
        renamed={"tag": "name"},
        max_positional=3,
        removed=("name",),
    ),
    "tensorflow.image_summary": OldFunction(
        current_name="summary.image",
        renamed={"tag": "name", "max_images": "max_outputs"},
        max_positional=4,
        removed=("name",),
    ),
    "tensorflow.audio_summary": OldFunction(
        current_name="summary.audio", renamed={"tag": "name"}, max_positional=5, removed=("name",)
    ),
    "tensorflow.SparseTensor": OldFunction(renamed={"shape": "dense_shape"}),
    "tensorflow.SparseTensorValue": OldFunction(renamed={"shape": "dense_shape"}),
    "tensorflow.concat": OldFunction(
        order=("axis", "values", "name"),
        renamed={"concat_dim": "axis"},
    ),
    "tensorflow.split": OldFunction(
        order=("axis", "num_or_size_splits", "value", "name"),
        renamed={"split_dim": "axis", "num_split": "num_or_size_splits"},
    ),
    "tensorflow.nn.softmax_cross_entropy_with_logits": OldFunction(
        order=("logits", "labels", "dim")
    ),
    "tensorflow.nn.sparse_softmax_cross_entropy_with_logits": OldFunction(
        order=("logits", "labels", "name")
    ),
    "tensorflow.nn.sigmoid_cross_entropy_with_logits": OldFunction(
        order=("logits", "labels", "name"), renamed={"targets": "labels"}
    ),
}
"""Old functions, by their old qualified names."""

SUMMARIES = frozenset(
    f"tensorflow.{kind}_summary" for kind in ("scalar", "histogram", "image", "audio")
)
"""Functions whose first argument may have been a list of tags."""

STILL_AVAILABLE = tuple(
    f"tensorflow.{name}"
    for name in (
        "all_variables",
        "initialize_all_variables",
        "initialize_local_variables",
        "initialize_variables",
    )
)
"""Old names that 1.15 still has besides the new ones."""

REMOVED = {
    "tensorflow.batch_svd": "tf.svd",
    "tensorflow.contrib.ctc": "tf.nn.ctc_loss",
    "tensorflow.models.rnn": "tf.nn.rnn_cell, tf.nn.static_rnn, tf.contrib.legacy_seq2seq",
    "tensorflow.nn.rnn_cell.InputProjectionWrapper": "tf.contrib.rnn.InputProjectionWrapper",
    "tensorflow.nn.rnn_cell._linear": "tf.layers.dense",
    "tensorflow.nn.rnn_cell.linear": "tf.layers.dense",
    "tensorflow.python.ops.seq2seq": "tf.contrib.legacy_seq2seq",
}
"""Names that cannot simply be replaced, with their current counterparts."""
