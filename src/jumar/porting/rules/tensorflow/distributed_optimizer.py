"""With several devices, optimizers average their gradients over the ranks."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.options import LossScale, PortOptions
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import Example, rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.optimizer_sites import DISTRIBUTED, LOSS_SCALED, sites

_EIGHT = PortOptions(devices=8)
_SCALED = PortOptions(devices=8, loss_scale=LossScale(kind="fixed", init_loss_scale=1024.0))
_REASON = Text(
    en="each rank computes gradients of its own batch: they are averaged over all ranks before "
    "they are applied; with one rank nothing is added to the graph",
    zh="每个 rank 只计算自己一批数据的梯度：应用前在所有 rank 间求平均；单 rank "
    "时图中不增加任何算子",
)
_ELSEWHERE = Text(
    en="this optimizer is handed to an Estimator; it is averaged over the ranks as well",
    zh="该优化器交给 Estimator 使用，同样在各 rank 间求平均",
)


@rule(
    "distributed-optimizer",
    title=Text(en="Optimizers average gradients over the ranks", zh="优化器在各 rank 间平均梯度"),
    source="npu_optimizer.py of Ascend/tensorflow",
    examples=(
        Example(
            before="import tensorflow as tf\n\n"
            "train_op = tf.train.AdamOptimizer(lr).minimize(loss)\n",
            after="import tensorflow as tf\n"
            "from npu_bridge.npu_init import NPUDistributedOptimizer\n\n"
            "train_op = NPUDistributedOptimizer(tf.train.AdamOptimizer(lr)).minimize(loss)\n",
            options=_EIGHT,
        ),
        Example(
            before="import tensorflow as tf\n\n\ndef train(lr, loss):\n"
            "    opt = tf.train.AdamOptimizer(lr)\n    return opt.minimize(loss)\n",
            after="import tensorflow as tf\nimport os\n"
            "from npu_bridge.npu_init import (\n    FixedLossScaleManager,\n"
            "    NPUDistributedOptimizer,\n    NPULossScaleOptimizer,\n)\n\n\n"
            "def train(lr, loss):\n"
            "    opt = NPULossScaleOptimizer(NPUDistributedOptimizer(tf.train.AdamOptimizer(lr)), "
            'FixedLossScaleManager(loss_scale=1024), is_distributed=int(os.getenv("RANK_SIZE", '
            '"1")) > 1)\n    return opt.minimize(loss)\n',
            options=_SCALED,
        ),
        Example(
            before="import tensorflow as tf\nfrom tensorflow.contrib.opt import "
            "MovingAverageOptimizer\n\n"
            "opt = MovingAverageOptimizer(tf.train.AdamOptimizer(lr))\n"
            "train_op = opt.minimize(loss)\nsaver = opt.swapping_saver()\n",
            after="import tensorflow as tf\nfrom tensorflow.contrib.opt import "
            "MovingAverageOptimizer\n"
            "from npu_bridge.npu_init import npu_distributed_optimizer_wrapper\n\n"
            "opt = npu_distributed_optimizer_wrapper("
            "MovingAverageOptimizer(tf.train.AdamOptimizer(lr)))\n"
            "train_op = opt.minimize(loss)\nsaver = opt.swapping_saver()\n",
            options=_EIGHT,
        ),
    ),
    untouched=(
        "import tensorflow as tf\n\ntrain_op = tf.train.AdamOptimizer(lr).minimize(loss)\n",
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n\n"
        "opt = npu_tf_optimizer(tf.train.AdamOptimizer(lr))\n",
        "import torch\n\nopt = torch.optim.Adam(model.parameters())  # not tf\n",
    ),
)
def distributed_optimizer(_: ast.Module, view: View) -> Iterator[Change]:
    """Put the distributed optimizer around each one that computes gradients."""
    if not view.options.distributed:
        return
    for site in sites(view, DISTRIBUTED | LOSS_SCALED):
        # The class has no attributes of the optimizer within; the function patches that itself.
        name = "NPUDistributedOptimizer"
        if site.members:
            name = "npu_distributed_optimizer_wrapper"
        yield view.rewrite(
            site.node,
            *site.replacements(view, f"{view.npu(name)}(", ")"),
            reason=_ELSEWHERE if site.elsewhere else _REASON,
            confidence="certain" if len(site.made) == 1 else "likely",
            imports=(name,),
        )
