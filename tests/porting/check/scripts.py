"""Small TensorFlow 1.15 scripts in every style that trains, for the runner to watch."""

_NETWORK = """
import numpy as np
import tensorflow as tf

def network(x, y, name="network"):
    with tf.variable_scope(name):
        hidden = tf.layers.dense(x, 8, activation=tf.nn.relu, name="hidden")
        hidden = tf.nn.dropout(hidden, keep_prob=0.8)
        out = tf.layers.dense(hidden, 1, name="out")
    return tf.reduce_mean(tf.square(out - y), name="loss")

def inputs():
    data = tf.data.Dataset.range(1000).map(
        lambda i: (tf.random_uniform([4]), tf.random_uniform([1])), num_parallel_calls=4)
    return data.shuffle(50).batch(4).make_one_shot_iterator().get_next()
"""

SESSION_RUN = (
    _NETWORK
    + """
def main():
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 1])
    loss = network(x, y)
    optimizer = tf.train.AdamOptimizer(0.01)
    train_op = optimizer.minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(100):
            batch = np.random.rand(4, 4)
            sess.run(train_op, {x: batch, y: batch.sum(1, keepdims=True)})

if __name__ == "__main__":
    main()
"""
)

MONITORED = (
    _NETWORK
    + """
loss = network(*inputs())
step = tf.train.get_or_create_global_step()
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
hooks = [tf.train.StopAtStepHook(last_step=50)]
with tf.train.MonitoredTrainingSession(hooks=hooks, checkpoint_dir="checkpoints") as sess:
    while not sess.should_stop():
        sess.run(train_op)
"""
)

SUPERVISOR = (
    _NETWORK
    + """
loss = network(*inputs())
step = tf.train.get_or_create_global_step()
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
supervisor = tf.train.Supervisor(logdir="log", save_model_secs=1, save_summaries_secs=0)
with supervisor.managed_session() as sess:
    while not supervisor.should_stop():
        sess.run([train_op, step])
"""
)

SLIM = (
    _NETWORK
    + """
import tensorflow.contrib.slim as slim
loss = network(*inputs())
tf.losses.add_loss(loss)
total = tf.losses.get_total_loss()
train_op = slim.learning.create_train_op(total, tf.train.GradientDescentOptimizer(0.1))
slim.learning.train(train_op, "log", number_of_steps=50, save_summaries_secs=1000)
"""
)

ESTIMATOR = (
    _NETWORK
    + """
def model_fn(features, labels, mode, params):
    loss = network(features, labels)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

config = tf.estimator.RunConfig(save_checkpoints_steps=100, model_dir="model")
tf.estimator.Estimator(model_fn, config=config, params={}).train(inputs, max_steps=50)
"""
)

TPU_ESTIMATOR = (
    _NETWORK
    + """
def model_fn(features, labels, mode, params):
    loss = network(features, labels)
    step = tf.train.get_or_create_global_step()
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1)) \\
        if params.get("use_tpu") else tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=step)
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.contrib.tpu.TPUEstimator(
    model_fn, config=tf.contrib.tpu.RunConfig(model_dir="model"), use_tpu=False,
    train_batch_size=4)
estimator.train(lambda params: inputs(), max_steps=50)
"""
)

KERAS = """
import numpy as np
from tensorflow import keras

model = keras.Sequential([
    keras.layers.Dense(8, activation="relu", input_shape=(4,)),
    keras.layers.Dropout(0.5),
    keras.layers.Dense(1),
])
model.compile("adam", "mse")
x = np.random.rand(64, 4)
model.fit(x, x.sum(1), batch_size=4, epochs=3, verbose=0)
"""

TWO_OPTIMIZERS = (
    _NETWORK
    + """
x = tf.random_normal([4, 4])
y = tf.random_normal([4, 1])
one, other = network(x, y, "one"), network(x, y, "other")
first = tf.train.AdamOptimizer().minimize(one, var_list=tf.trainable_variables("one"))
second = tf.train.AdamOptimizer().minimize(other, var_list=tf.trainable_variables("other"))
penalty = tf.reduce_mean(tf.gradients(one, x)[0])
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for step in range(50):
    sess.run([first, penalty])
    sess.run({"second": second, "shown": [other]})
    sess.run(penalty)
"""
)

OWN_OPTIMIZER = (
    _NETWORK
    + """
class Own(tf.train.Optimizer):
    def __init__(self):
        super(Own, self).__init__(False, "Own")

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        return tf.group(*[v.assign(v - 0.1 * g) for g, v in grads_and_vars], name=name)

loss = network(*inputs())
variables = tf.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
train_op = Own().apply_gradients(zip(gradients, variables))
by_hand = tf.group(*[tf.assign_sub(v, 0.1 * g) for g, v in zip(gradients, variables)])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(50):
        sess.run(train_op)
        sess.run(by_hand)
"""
)

QUEUES = """
import numpy as np
import tensorflow as tf

values = tf.constant(np.random.rand(200, 4), tf.float32)
source = tf.train.input_producer(values, shuffle=True)
parts = [[source.dequeue() + tf.random_uniform([4])] for _ in range(4)]
shuffled = tf.train.shuffle_batch_join(parts, 4, capacity=60, min_after_dequeue=20)
batch = tf.train.batch([shuffled], 1, num_threads=3)[0]
loss = tf.reduce_mean(tf.square(tf.layers.dense(batch, 1) - 1))
step = tf.train.get_or_create_global_step()
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
with tf.train.MonitoredTrainingSession() as sess:
    while True:
        sess.run(train_op)
"""

BUCKETS = """
import numpy as np
import tensorflow as tf

values = tf.constant(np.random.rand(200, 4), tf.float32)
source = tf.train.input_producer(values, shuffle=True)
_, batch = tf.contrib.training.bucket_by_sequence_length(
    tf.constant(4), [source.dequeue()], batch_size=[2, 2, 2], bucket_boundaries=[3, 6],
    num_threads=3, capacity=2, dynamic_pad=True)
loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.reshape(batch[0], [2, 4]), 1) - 1))
step = tf.train.get_or_create_global_step()
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
with tf.train.MonitoredTrainingSession() as sess:
    while True:
        sess.run(train_op)
"""

RANDOM_CROPS = """
import tensorflow as tf

def crop(number):
    picture = tf.reshape(tf.range(400.0), [20, 20, 1]) / 400
    box = tf.constant([[[0.2, 0.2, 0.8, 0.8]]])
    begin, size, _ = tf.image.sample_distorted_bounding_box([20, 20, 1], box, area_range=[0.1, 0.9])
    return tf.image.resize_images(tf.slice(picture, begin, size), [4, 4])

batch = tf.data.Dataset.range(100).map(crop).batch(2).make_one_shot_iterator().get_next()
loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.reshape(batch, [2, 16]), 1) - 1))
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    while True:
        sess.run(train_op)
"""

WATCHED = {
    "sess.run": SESSION_RUN,
    "MonitoredTrainingSession": MONITORED,
    "Supervisor": SUPERVISOR,
    "slim.learning.train": SLIM,
    "Estimator": ESTIMATOR,
    "TPUEstimator": TPU_ESTIMATOR,
    "Keras fit": KERAS,
    "two optimizers": TWO_OPTIMIZERS,
    "an optimizer of its own": OWN_OPTIMIZER,
}

SESSION_RUN_PORTED = (
    SESSION_RUN.replace(
        "import tensorflow as tf\n",
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n",
        1,
    )
    .replace("tf.nn.dropout(hidden, keep_prob=0.8)", "npu_ops.dropout(hidden, keep_prob=0.8)")
    .replace("tf.Session()", "tf.Session(config=npu_config_proto())")
    .replace(
        "    train_op = ",
        "    manager = ExponentialUpdateLossScaleManager(2**15, 1000, 2, 2, 0.5)\n"
        "    optimizer = NPULossScaleOptimizer(optimizer, manager)\n"
        "    train_op = ",
    )
)

ESTIMATOR_PORTED = (
    ESTIMATOR.replace(
        "import tensorflow as tf\n",
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n",
        1,
    )
    .replace("tf.estimator.RunConfig(", "NPURunConfig(precision_mode='allow_mix_precision', ")
    .replace("tf.estimator.Estimator(", "NPUEstimator(")
)
