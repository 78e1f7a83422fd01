"""Loss scale and distribution: scripts that are ported, and then trained by TensorFlow 1.15."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions, parse_loss_scale
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from jumar.porting.standin import standin_folder
from tests.tensorflow115 import run_tensorflow

HEAD = """
import numpy as np
import tensorflow as tf

losses = []
X = np.linspace(-1, 1, 32).reshape(16, 2).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)
w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(0.3))
loss = tf.reduce_mean(tf.square(tf.matmul(X, w) - Y))
step = tf.train.get_or_create_global_step()
"""
LOOP = """
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(4):
        losses.append(float(sess.run([train_op, loss])[1]))
"""
SCRIPTS = {
    "chosen": """
def make(name):
    if name == "adam":
        opt = tf.train.AdamOptimizer(0.1)
    else:
        opt = tf.train.MomentumOptimizer(0.1, 0.9)
    grads = opt.compute_gradients(loss)
    return opt.apply_gradients(grads, global_step=step)

train_op = make("momentum")
""",
    "decay": """
class AdamWeightDecayOptimizer(tf.train.Optimizer):
    def __init__(self, rate):
        super(AdamWeightDecayOptimizer, self).__init__(False, "AdamWeightDecayOptimizer")
        self.rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        updates = []
        for grad, var in grads_and_vars:
            m = tf.get_variable(var.op.name + "/m", var.shape.as_list(), trainable=False,
                                initializer=tf.zeros_initializer())
            next_m = 0.9 * m + 0.1 * grad
            updates += [var.assign(var - self.rate * next_m), m.assign(next_m)]
        return tf.group(*updates, name=name)


def create_optimizer(rate):
    optimizer = AdamWeightDecayOptimizer(rate)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    (grads, _) = tf.clip_by_global_norm(grads, clip_norm=0.1)
    op = optimizer.apply_gradients(zip(grads, tvars), global_step=step)
    return tf.group(op, [step.assign(step + 1)])

train_op = create_optimizer(0.5)
""",
    "averaged": """
opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.AdamOptimizer(0.1), average_decay=0.5)
train_op = opt.minimize(loss, global_step=step)
saver = opt.swapping_saver()
""",
    "two": """
v = tf.get_variable("v", [], initializer=tf.constant_initializer(1.0))
first = tf.train.AdamOptimizer(0.1).minimize(loss, var_list=[w])
second = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(v), var_list=[v])
train_op = [first, second]
""",
    "dynamic": """
scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=8, increment_period=2)
opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
    tf.train.GradientDescentOptimizer(0.1), loss_scale=scale)
train_op = opt.minimize(loss, global_step=step)
""",
}
HOROVOD = """
import horovod.tensorflow as hvd

hvd.init()
opt = tf.train.GradientDescentOptimizer(0.1 * hvd.size())
opt = hvd.DistributedOptimizer(opt, compression=hvd.Compression.fp16)
train_op = opt.minimize(loss, global_step=step)
bcast = hvd.broadcast_global_variables(0)
total = hvd.allreduce(loss, average=False)
"""
WITHOUT_HOROVOD = """
opt = tf.train.GradientDescentOptimizer(0.1)
train_op = opt.minimize(loss, global_step=step)
bcast, total = tf.no_op(), loss
"""
AFTER = LOOP.replace("    for _", "    sess.run(bcast)\n    assert sess.run(total) > 0\n    for _")
OPTIONS = {
    "fixed": PortOptions(loss_scale=parse_loss_scale("fixed:1024")),
    "exponential": PortOptions(
        loss_scale=parse_loss_scale("exponential:2**15,2,2,0.5"), precision="allow_mix_precision"
    ),
    "devices": PortOptions(loss_scale=parse_loss_scale("fixed:8"), devices=8),
}
RUN = """
import os, runpy
sys.dont_write_bytecode = True
root, standin = sys.argv[1:3]
sys.path.insert(0, standin)
for name in ("RANK_SIZE", "RANK_ID", "CM_WORKER_SIZE", "DEVICE_ID", "JOB_ID", "TF_CONFIG"):
    os.environ.pop(name, None)
answers = {}
# The originals come first: a port changes what a session of the process is.
for folder in ("original", "fixed", "exponential", "devices", "two"):
    if folder == "two":
        os.environ.update(RANK_SIZE="2", RANK_ID="0", DEVICE_ID="0", JOB_ID="1")
    answers[folder] = {}
    for file in sorted(os.listdir(os.path.join(root, folder))):
        tf.reset_default_graph()
        answers[folder][file] = runpy.run_path(os.path.join(root, folder, file))["losses"]
answer(answers)
"""
Losses = dict[str, list[float]]


def write(folder: Path, horovod: str, options: PortOptions | None) -> None:
    """The scripts, ported or as they are."""
    folder.mkdir()
    texts = {name: HEAD + text + LOOP for name, text in SCRIPTS.items()}
    texts["horovod"] = HEAD + horovod + AFTER
    for name, text in texts.items():
        if options is not None:
            report = port_file(SourceText(text), f"{name}.py", Project(folder), options)
            assert report.status == "ported"
            assert "NPULossScaleOptimizer(" in report.after
            text = report.after
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Losses]:
    """What all scripts lose in their first steps: TensorFlow is started once."""
    root = tmp_path_factory.mktemp("runs")
    write(root / "original", WITHOUT_HOROVOD, None)
    for name, options in OPTIONS.items():
        write(root / name, HOROVOD, options)
    write(root / "two", HOROVOD, OPTIONS["devices"])
    return run_tensorflow(RUN, str(root), str(standin_folder()))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_wrapped_optimizers_train_as_before(name: str, runs: dict[str, Losses]) -> None:
    for script, losses in runs["original"].items():
        assert len(losses) == 4
        assert runs[name][script] == pytest.approx(losses, rel=1e-5), script


@pytest.mark.slow
def test_two_equal_ranks_average_to_the_result_of_one(
    runs: dict[str, Losses],
) -> None:
    for script, losses in runs["original"].items():
        if script != "horovod.py":
            # That one raises its learning rate with the number of ranks.
            assert runs["two"][script] == pytest.approx(losses, rel=1e-5), script
