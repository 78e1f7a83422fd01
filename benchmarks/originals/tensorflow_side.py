"""One training step of an original, in TensorFlow 1.15: the child of `original_step.py`.

Runs under Python 3.7 and imports nothing of jumar. Builds the graph of the original's own code,
then answers each line `N` on its input with the times of N steps in milliseconds.
"""

import importlib
import json
import os
import sys
import time
import types

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf


def stub(name, **contents):
    """Stand in for a module that the original imports and its graph does not need."""
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    return module


def random_images(batch, size, channels, low=0.0, high=1.0):
    """float32 [batch, size, size, channels], made once and held by the graph."""
    values = np.random.RandomState(1).uniform(low, high, (batch, size, size, channels))
    return tf.constant(values.astype(np.float32))


def biggan128(batch, width):
    """Two iterations with n_critic 2: two updates of D and one of G."""
    datasets = stub("keras.datasets", cifar10=None, mnist=None)
    stub("keras", datasets=datasets)
    stub("scipy", misc=stub("scipy.misc"))
    original = importlib.import_module("BigGAN_128")
    ops = importlib.import_module("ops")
    gan = object.__new__(original.BigGAN_128)
    gan.ch, gan.z_dim, gan.sn, gan.batch_size, gan.c_dim = width, 128, True, batch, 3
    images = random_images(batch, 128, 3, -1.0, 1.0)
    z = tf.truncated_normal([batch, 1, 1, 128])
    real = gan.discriminator(images)
    fake = gan.discriminator(gan.generator(z), reuse=True)
    d_loss = ops.discriminator_loss("hinge", real=real, fake=fake)
    g_loss = ops.generator_loss("hinge", fake=fake)
    trained = tf.trainable_variables()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        adam = tf.train.AdamOptimizer(2e-4, beta1=0.0, beta2=0.9)
        d_step = adam.minimize(d_loss, var_list=[v for v in trained if "discriminator" in v.name])
        adam = original.MovingAverageOptimizer(
            tf.train.AdamOptimizer(5e-5, beta1=0.0, beta2=0.9), average_decay=0.9999
        )
        g_step = adam.minimize(g_loss, var_list=[v for v in trained if "generator" in v.name])

    def step(session):
        session.run([d_step, d_loss])
        session.run([g_step, g_loss])
        session.run([d_step, d_loss])

    return step


def videnn_spatial(batch, width):
    """A step on patches of 50 x 50."""
    del width
    stub("cv2")
    stub("PIL", Image=None)
    model = importlib.import_module("model_spatialCNN")
    with tf.Session() as session:
        network = model.denoiser(session, batch_size=batch)
    random = np.random.RandomState(1)
    clean = random.uniform(0, 1, (batch, 50, 50, 3)).astype(np.float32)
    noisy = clean + random.normal(0, 0.1, clean.shape).astype(np.float32)
    feed = {network.Y_: clean, network.X: noisy, network.lr: 1e-3, network.is_training: True}

    def step(session):
        session.run([network.train_op, network.loss], feed_dict=feed)

    return step


def nlrn(batch, width):
    """A step of 12 recurrences on patches of 43 x 43."""
    model = importlib.import_module("models.nlrn")
    boundaries = ((100000,), (1e-3, 5e-4))
    params = types.SimpleNamespace(
        num_steps=12,
        num_filters=width,
        non_local_field_size=35,
        num_channels=1,
        learning_rate=boundaries,
        init_ckpt=None,
    )
    stub_profile = types.SimpleNamespace(total_parameters=0)
    tf.profiler.profile = lambda *_: stub_profile
    images = random_images(batch, 43, 1)
    spec = model.model_fn(
        {"source": images}, {"target": images}, tf.estimator.ModeKeys.TRAIN, params, None
    )

    def step(session):
        session.run([spec.train_op, spec.loss])

    return step


def dscnn_s(batch, width):
    """A step on [batch, 490] features, as the original feeds them."""
    del width
    models = importlib.import_module("models")
    settings = models.prepare_model_settings(12, 16000, 1000, 40.0, 20.0, 10)
    features = np.random.RandomState(1).normal(0, 1, (batch, 490)).astype(np.float32)
    labels = np.random.RandomState(2).randint(0, 12, batch).astype(np.int64)
    fingerprint = tf.placeholder(tf.float32, [None, 490])
    truth = tf.placeholder(tf.int64, [None])
    size = [5, 64, 10, 4, 2, 2] + [64, 3, 3, 1, 1] * 4
    logits, dropout = models.create_model(fingerprint, settings, "ds_cnn", size, True)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=truth, logits=logits)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        rate = tf.placeholder(tf.float32, [])
        optimizer = tf.train.AdamOptimizer(rate)
        train = tf.contrib.slim.learning.create_train_op(loss, optimizer)
    feed = {fingerprint: features, truth: labels, dropout: 1.0, rate: 5e-4}

    def step(session):
        session.run([train, loss], feed_dict=feed)

    return step


def vqvae_cifar10(batch, width):
    """A step on 32 x 32 pictures with 10 codes of that many features."""
    stub("better_exceptions")
    model = importlib.import_module("model")
    images = random_images(batch, 32, 3)
    count = tf.Variable(0, trainable=False)
    with tf.variable_scope("params") as params:
        pass
    network = model.VQVAE(
        tf.constant(2e-4),
        count,
        0.25,
        images,
        10,
        width,
        model._cifar10_arch,
        params,
        is_training=True,
    )

    def step(session):
        session.run([network.loss, network.train_op])

    return step


def bert_base(batch, width):
    """A pre-training step on full instances of 128 word pieces; the width is the layers."""
    modeling = importlib.import_module("modeling")
    pretraining = importlib.import_module("run_pretraining")
    random = np.random.RandomState(1)
    shape, predictions = (batch, 128), (batch, 20)
    positions = [np.sort(random.permutation(126)[:20] + 1) for _ in range(batch)]
    features = {
        "input_ids": random.randint(1000, 21128, shape),
        "input_mask": np.ones(shape),
        "segment_ids": np.repeat([[0] * 64 + [1] * 64], batch, axis=0),
        "masked_lm_positions": np.stack(positions),
        "masked_lm_ids": random.randint(1000, 21128, predictions),
        "masked_lm_weights": np.ones(predictions),
        "next_sentence_labels": random.randint(0, 2, (batch, 1)),
    }
    kinds = {"masked_lm_weights": np.float32}
    constants = {
        name: tf.constant(value.astype(kinds.get(name, np.int32)))
        for name, value in features.items()
    }
    config = modeling.BertConfig(vocab_size=21128, num_hidden_layers=width)
    model_fn = pretraining.model_fn_builder(
        config,
        init_checkpoint=None,
        learning_rate=1e-4,
        num_train_steps=500000,
        num_warmup_steps=10000,
        use_tpu=False,
        use_one_hot_embeddings=False,
    )
    spec = model_fn(constants, None, tf.estimator.ModeKeys.TRAIN, {})

    def step(session):
        session.run([spec.train_op, spec.loss])

    return step


def psenet(batch, width):
    """A step on pictures of that side, with the averages that the original keeps."""
    stub("utils", utils_tool=stub("utils.utils_tool", logger=None))
    model = importlib.import_module("nets.model")
    random, side = np.random.RandomState(1), width // 4
    images = random_images(batch, width, 3, 0.0, 255.0)
    kernels = tf.constant((random.uniform(size=(batch, side, side, 6)) > 0.8).astype(np.float32))
    mask = tf.ones([batch, side, side, 1])
    loss = model.loss(kernels, model.model(images, is_training=True), mask)
    return averaged_step(loss, 1e-5)


def east(batch, width):
    """A step on pictures of that side.

    The usual original is GPL and is not read. The backbone is the one of tensorflow_PSENet, which
    equals EAST's; merging, heads and losses are written anew from the paper and from what is known
    of that graph: merges of 128, 64 and 32 channels, legacy bilinear enlarging, 24,068,294 weights.
    """
    slim = tf.contrib.slim
    resnet = importlib.import_module("nets.resnet.resnet_v1")
    random, side = np.random.RandomState(1), width // 4
    images = random_images(batch, width, 3, 0.0, 255.0) - [123.68, 116.78, 103.94]
    with slim.arg_scope(resnet.resnet_arg_scope(weight_decay=1e-5)):
        _, maps = resnet.resnet_v1_50(images, is_training=True, scope="resnet_v1_50")
    norm = {"decay": 0.997, "epsilon": 1e-5, "scale": True, "is_training": True}
    decay = slim.l2_regularizer(1e-5)
    with slim.arg_scope([slim.conv2d], weights_regularizer=decay):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=norm):
            merged = maps["C5"]
            for name, channels in (("C4", 128), ("C3", 64), ("C2", 32)):
                lateral = maps[name]
                larger = tf.image.resize_bilinear(merged, tf.shape(lateral)[1:3])
                merged = slim.conv2d(tf.concat([larger, lateral], -1), channels, 1)
                merged = slim.conv2d(merged, channels, 3)
            merged = slim.conv2d(merged, 32, 3)
        score, distances, turned = (
            slim.conv2d(merged, channels, 1, activation_fn=tf.nn.sigmoid) for channels in (1, 4, 1)
        )
    distances, angle = distances * 512, (turned - 0.5) * np.pi / 2
    truth = tf.constant((random.uniform(size=(batch, side, side, 1)) > 0.8).astype(np.float32))
    sides = tf.constant(random.uniform(1, 50, (batch, side, side, 4)).astype(np.float32))
    dice = 1 - 2 * tf.reduce_sum(truth * score) / (tf.reduce_sum(truth) + tf.reduce_sum(score))
    (top, right, bottom, left), (top_, right_, bottom_, left_) = (
        tf.split(each, 4, -1) for each in (sides, distances)
    )
    common = (tf.minimum(right, right_) + tf.minimum(left, left_)) * (
        tf.minimum(top, top_) + tf.minimum(bottom, bottom_)
    )
    union = (top + bottom) * (right + left) + (top_ + bottom_) * (right_ + left_) - common
    boxes = -tf.log((common + 1) / (union + 1)) + 20 * (1 - tf.cos(angle))
    return averaged_step(0.01 * dice + tf.reduce_mean(boxes * truth), 1e-4)


def averaged_step(loss, learning_rate):
    """Adam with weight decay in the loss and averages of the weights, as both detectors do."""
    total = tf.add_n([loss, *tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)])
    count = tf.Variable(0, trainable=False)
    train = tf.train.AdamOptimizer(learning_rate).minimize(total, count)
    averages = tf.train.ExponentialMovingAverage(0.997, count).apply(tf.trainable_variables())
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)

    def step(session):
        session.run([total, train, averages, updates])

    return step


NETWORKS = {
    "bert-base": bert_base,
    "biggan128": biggan128,
    "videnn-spatial": videnn_spatial,
    "nlrn": nlrn,
    "psenet": psenet,
    "east": east,
    "ds-cnn-s": dscnn_s,
    "vqvae-cifar10": vqvae_cifar10,
}


def main():
    network, folder, batch, width, threads = sys.argv[1:6]
    sys.path.insert(0, folder)
    tf.logging.set_verbosity(tf.logging.ERROR)
    # The originals print while they build; only the answers may go to the output.
    answers, sys.stdout = sys.stdout, sys.stderr
    step = NETWORKS[network](int(batch), int(width))
    config = tf.ConfigProto(
        intra_op_parallelism_threads=int(threads), inter_op_parallelism_threads=int(threads)
    )
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        answers.write(f"ready TensorFlow {tf.__version__}\n")
        answers.flush()
        for line in sys.stdin:
            times = []
            for _ in range(int(line)):
                start = time.perf_counter()
                step(session)
                times.append(1000 * (time.perf_counter() - start))
            answers.write(json.dumps(times) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
