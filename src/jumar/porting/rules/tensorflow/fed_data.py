"""With several devices, data that each rank feeds from Python."""

import ast

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument
from jumar.porting.rules.tensorflow.keras_runs import runs_keras
from jumar.porting.rules.tensorflow.ranks import queries_rank
from jumar.porting.rules.tensorflow.training_scripts import evaluates, is_run, runs_train_op, trains
from jumar.porting.script.expressions import is_omitted, method_name

_SAME = Remark(
    en="every rank feeds data that the script reads itself: all ranks see the same data, or each "
    "samples from all of it, and each epoch processes the data once per rank",
    zh="每个 rank 都由脚本自行读取数据并 feed：各 rank 看到相同数据，或各自从全部数据中抽取，"
    "一个 epoch 会被重复 rank 数次",
    todo_en='keep every RANK_SIZE-th sample, starting at int(os.getenv("RANK_ID", "0")), before '
    "shuffling and batching; use a different seed on each rank if data is sampled at random, and "
    "the same number of batches on all ranks",
    todo_zh='在打乱和分批之前，从 int(os.getenv("RANK_ID", "0")) 起每隔 RANK_SIZE 取一个样本；'
    "随机抽取数据时各 rank 使用不同的种子，且批数须相同",
    severity="accuracy",
    confidence="likely",
)
_FITS = {"fit": "x", "fit_generator": "generator", "train_on_batch": "x"}
"""Methods that train a Keras model, with the parameter for the data."""
_USES_RANK = Text(en="the script already uses its rank", zh="脚本已使用 rank 编号")


@rule(
    "fed-data",
    title=Text(
        en="Data that every rank reads and feeds is reported", zh="指出各 rank 自行 feed 的数据"
    ),
    source="TensorFlow 1.15 migration guide of CANN",
)
def fed_data(_: ast.Module, view: View) -> Changes:
    """Report the first training step of a module that feeds data from Python."""
    if not view.options.distributed:
        return
    yield from _fitted(view)
    runs = [call for call in view.module.calls if is_run(call) and not evaluates(call, view)]
    # A training run fetches an op with the name of one, or fills a queue; if there is none, any run
    # in a loop may be one.
    training_runs = [node for node in runs if runs_train_op(node) or _fills_queue(node)]
    steps = [
        node
        for node in training_runs or runs
        if _feeds(node) and (training_runs or _is_in_loop(node, view))
    ]
    if not steps or not trains(view):
        return
    if queries_rank(view):
        yield Leave(node=steps[0], reason=_USES_RANK)
        return
    yield view.notice(steps[0], _SAME)


def _fitted(view: View) -> Changes:
    """Report the first call that trains a Keras model on arrays or a generator."""
    for call in view.module.calls:
        method = method_name(call)
        if method not in _FITS or not runs_keras(call, view):
            continue
        data = argument(call, _FITS[method], 0)
        if data is None or view.kinds.of(data) == "Dataset":
            continue
        if queries_rank(view):
            yield Leave(node=call, reason=_USES_RANK)
        else:
            yield view.notice(call, _SAME)
        return


def _feeds(call: ast.Call) -> bool:
    """Whether a session run receives Python values."""
    return not is_omitted(argument(call, "feed_dict", 1))


def _fills_queue(call: ast.Call) -> bool:
    return bool(call.args) and "enqueue" in ast.unparse(call.args[0])


def _is_in_loop(call: ast.Call, view: View) -> bool:
    return any(
        isinstance(enclosing, ast.For | ast.While)
        for enclosing in view.module.scopes.ancestors(call)
    )
