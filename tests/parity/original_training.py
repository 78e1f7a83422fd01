"""The originals' own training loops, in TensorFlow 1.15: the child of `test_original_training.py`.

Runs under Python 3.7 and imports nothing of jumar. `NETWORK FOLDER UPDATES` trains with the code in
FOLDER, from the newest checkpoint below the working folder or from the beginning, until the network
has had UPDATES updates, and saves. What the originals import and a small training run does not need
(OpenCV, Pillow, Keras, the NPU's bridge) is stubbed; all that touches variables, optimizers,
counters and savers is theirs.
"""

import importlib
import os
import runpy
import sys
import types

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf


def stub(name, **contents):
    """A module of that name, in all the modules above it."""
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules.get(above) or stub(above), last, module)
    return module


def run_script(name, *options):
    """Run one of the original's scripts as its user does."""
    sys.argv = [name, *options]
    runpy.run_path(os.path.join(sys.path[0], name), run_name="__main__")


def newest(folder, otherwise):
    """The number at the end of the newest checkpoint's name."""
    result = tf.train.latest_checkpoint(folder)
    return int(result.rpartition("-")[2]) if result else otherwise


def ds_cnn(updates):
    """`train.py` begins where `global_step` says, which counts two an update."""
    begin = tf.train.latest_checkpoint("saved/best")
    first = tf.train.load_variable(begin, "global_step") if begin else 1
    done = first // 2
    last = first + updates - done - 1
    size = [5, 64, 10, 4, 2, 2, *([64, 3, 3, 1, 1] * 4)]
    run_script(
        "train.py",
        *("--data_url=", "--data_dir=clips", "--train_dir=saved", "--summaries_dir=summaries"),
        *("--model_architecture=ds_cnn", "--model_size_info", *map(str, size)),
        *("--dct_coefficient_count=10", "--window_size_ms=40", "--window_stride_ms=20"),
        *("--how_many_training_steps=%d" % last, "--learning_rate=0.0005"),
        *("--eval_step_interval=1000", "--batch_size=20"),
        *(["--start_checkpoint=%s" % begin] if begin else []),
    )


def videnn(updates):
    """A batch an epoch, so that epochs are updates."""
    stub("cv2")
    stub("PIL", Image=None)
    model = importlib.import_module("model_spatialCNN")
    random = np.random.RandomState(1)
    clean = random.randint(0, 256, (4, 50, 50, 3)).astype(np.uint8)
    noisy = np.clip(clean + random.normal(0, 25, clean.shape), 0, 255).astype(np.uint8)
    with tf.Session() as session:
        network = model.denoiser(session, batch_size=4)
        network.train(
            clean, noisy, clean[:1], noisy[:1], 4, "saved", epoch=updates, lr=[1e-3] * updates
        )


def nlrn(updates):
    """`trainer.py`, an Estimator."""
    stub("PIL", Image=None)
    with open("pictures.txt", "w") as file:
        file.write(os.path.abspath("pictures/train/0.png"))
    run_script(
        "trainer.py",
        *("--dataset=denoise", "--model=nlrn", "--job-dir=saved", "--train-flist=pictures.txt"),
        *("--eval-flist=pictures.txt", "--train-batch-size=2", "--eval-steps=1"),
        "--train-steps=%d" % updates,
    )


def biggan(updates):
    """Its loop counts from 1, and saves at the end of an epoch."""
    stub("keras.datasets", cifar10=None, mnist=None)
    stub("scipy.misc")
    model = importlib.import_module("BigGAN_128")
    # There is no GPU to copy batches to.
    model.prefetch_to_device = lambda device, size: lambda batches: batches
    model.load_data = lambda dataset_name: [os.path.abspath("pictures/train/0.png")] * 4
    first = newest("saved/BigGAN_own_hinge_128_128_sn", 0)
    args = types.SimpleNamespace(
        dataset="own", checkpoint_dir="saved", sample_dir="samples", result_dir="results",
        log_dir="summaries", epoch=1, iteration=first + updates - max(0, first - 1), batch_size=2,
        print_freq=1000, save_freq=1000, img_size=128, ch=8, z_dim=128, gan_type="hinge",
        n_critic=2, sn=True, ld=10.0, sample_num=1, test_num=1, g_lr=5e-5, d_lr=2e-4, beta1=0.0,
        beta2=0.9, moving_decay=0.9999,
    )  # fmt: skip
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        network = model.BigGAN_128(session, args)
        network.build_model()
        network.train()


def bridge():
    """What the classifiers take of npu_bridge, without an NPU."""
    stub("npu_bridge.estimator.npu.npu_optimizer", NPUDistributedOptimizer=lambda inner: inner)
    operations = stub("npu_bridge.estimator.npu_ops")
    operations.dropout = lambda values, keep: tf.nn.dropout(values, keep_prob=keep)


def estimated(model_fn, updates):
    """An Estimator as the classifiers' trainers make it."""

    def pictures():
        random = np.random.RandomState(1)
        values = random.uniform(-1, 1, (2, 224, 224, 3)).astype(np.float32)
        return tf.data.Dataset.from_tensors((values, np.array([[1], [2]], np.int32))).repeat()

    estimator = tf.estimator.Estimator(
        model_fn=model_fn,
        model_dir="saved",
    )
    estimator.train(pictures, max_steps=updates)


class Rate:
    """A constant learning rate in place of the schedules."""

    def get_learning_rate(self):
        """The rate."""
        return tf.constant(1e-3)


def alexnet(updates):
    """Ascend's AlexNet with ten classes."""
    bridge()
    config = types.SimpleNamespace(
        dtype=tf.float32, alexnet_version="xavier", num_classes=10, label_smoothing=0.1,
        weight_decay=1e-4, restore_path=None, momentum=0.9, use_nesterov=True,
    )  # fmt: skip
    model = importlib.import_module("alexnet.model").Model(config, None, Rate(), None, None)
    estimated(model.get_estimator_model_func, updates)


def resnext50(updates):
    """Ascend's ResNeXt-50 with its own configuration."""
    bridge()
    convolve = tf.nn.conv2d

    def in_groups(values, kernel, *more, **options):
        # TensorFlow convolves in groups on a GPU only.
        groups = int(values.shape[3]) // int(kernel.shape[2])
        parts = zip(tf.split(values, groups, 3), tf.split(kernel, groups, 3))
        return tf.concat([convolve(x, k, *more, **options) for x, k in parts], 3)

    tf.nn.conv2d = in_groups
    stub("trainers.train_helper", stage=None)
    config = importlib.import_module("configs.res50_256bs_1p_host").res50_config()
    config.update(restore_path="", num_classes=10, dtype=tf.float32)
    module = importlib.import_module("models.resnet50.res50_model")
    model = module.Model(config, None, Rate(), None, None, None, None)
    estimated(model.get_estimator_model_func, updates)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    globals()[sys.argv[1].replace("-", "_")](int(sys.argv[3]))
