"""Arrays that Keras splits into batches, of which the last may be smaller."""

import ast

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, is_open, literal
from jumar.porting.rules.tensorflow.array_sizes import integer_value, samples_in
from jumar.porting.rules.tensorflow.keras_runs import runs_keras
from jumar.porting.script.expressions import is_omitted, method_name

_STEPS = {"fit": ("steps_per_epoch", 12), "evaluate": ("steps", 5)}
"""The parameter for the number of steps, with which the script defines its own batches."""
_DEFAULT_BATCH = 32
_VALIDATION_SPLIT = 6
_GENERATORS = frozenset({"flow", "flow_from_directory", "flow_from_dataframe"})
_KNOWN = Remark(
    en="{samples} samples are not a multiple of the batch size {batch}: the last batch has another "
    "shape, for which the graph is compiled again",
    zh="{samples} 个样本不能被 batch {batch} 整除：最后一批形状不同，需重新编译图",
)
_UNKNOWN = Remark(
    en="Keras splits these arrays into batches; unless the number of samples is a multiple of the "
    "batch size, the last batch has another shape, for which the graph is compiled again",
    zh="Keras 将这些数组切成批；若样本数不是 batch size 的整数倍，最后一批形状不同，需重新编译图",
)
_TRAIN_ADVICE = Text(
    en="truncate the arrays, including those for validation, to a multiple of the batch size "
    "(n = len(x) // batch * batch); or pass a tf.data.Dataset with drop_remainder=True",
    zh="将数组截断为 batch size 的整数倍（n = len(x) // batch * batch），验证数据同理；"
    "或改用带 drop_remainder=True 的 tf.data",
)
_EVAL_ADVICE = Text(
    en="choose a batch size that divides the number of samples, or pad the last batch and exclude "
    "the padding from the metric: truncating the arrays would lose samples",
    zh="选用能整除样本数的 batch size，或补齐最后一批并在指标中忽略补齐部分：截断数组会丢失样本",
)
_WHOLE = Text(
    en="the number of samples is a multiple of the batch size: all batches have the same shape",
    zh="样本数可被 batch size 整除，每批形状相同",
)


@rule(
    "keras-last-batch",
    title=Text(
        en="Keras batches of which the last may be smaller are reported",
        zh="指出 Keras 中可能不足一批的最后一批",
    ),
    source="training_arrays.py of TensorFlow 1.15; TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Call,),
)
def keras_last_batch(call: ast.Call, view: View) -> Changes:
    """Report `fit` and `evaluate` on arrays, unless all of their batches have the same size."""
    method = method_name(call)
    if method not in _STEPS:
        return
    arrays, targets = argument(call, "x", 0), argument(call, "y", 1)
    if arrays is None or is_omitted(targets) or _is_batched(arrays, view):
        return
    parameter, position = _STEPS[method]
    if not is_omitted(argument(call, parameter, position)) or not runs_keras(call, view):
        return
    size = argument(call, "batch_size", 2)
    if _is_number_of_samples(size, arrays):
        return
    batch = _DEFAULT_BATCH if is_omitted(size) else integer_value(size, view)
    parts = _parts(call, method, arrays, view)
    uneven = [number for number in parts if batch and number is not None and number % batch]
    if batch == 1 or (batch and None not in parts and not uneven):
        yield Leave(node=call, reason=_WHOLE)
        return
    yield view.notice(
        call,
        _KNOWN.filled(samples=uneven[0], batch=batch) if uneven else _UNKNOWN,
        todo=_TRAIN_ADVICE if method == "fit" else _EVAL_ADVICE,
        severity="speed",
        confidence="unsure" if is_open(call) else "certain" if uneven else "likely",
    )


def _parts(call: ast.Call, method: str, arrays: ast.expr, view: View) -> list[int | None]:
    """The numbers of samples that are split into batches: for training and for validation."""
    samples = samples_in(arrays, view)
    if method != "fit":
        return [samples]
    parts: list[int | None] = [samples]
    split_argument = argument(call, "validation_split", _VALIDATION_SPLIT)
    if split_argument is not None:
        split = literal(split_argument)
        if samples is None or not isinstance(split, float | int) or isinstance(split, bool):
            parts = [None]
        elif split:
            num_trained = int(samples * (1.0 - split))
            parts = [num_trained, samples - num_trained]
    validation = argument(call, "validation_data", _VALIDATION_SPLIT + 1)
    if not is_omitted(validation):
        inputs = validation.elts[0] if isinstance(validation, ast.Tuple | ast.List) else None
        parts.append(samples_in(inputs, view) if inputs is not None else None)
    return parts


def _is_batched(arrays: ast.expr, view: View) -> bool:
    """Whether the batches come from a data set or a generator."""
    return view.kinds.of(arrays) == "Dataset" or method_name(arrays) in _GENERATORS


def _is_number_of_samples(size: ast.expr | None, arrays: ast.expr) -> bool:
    """Whether a batch size is the number of all samples: `len(x)` or `x.shape[0]`."""
    if size is None:
        return False
    name = ast.unparse(arrays)
    return ast.unparse(size) in (f"len({name})", f"{name}.shape[0]")
