"""ViDeNN's original trains and saves, or restores and trains on: the child of `train_on.py`.

Runs under Python 3.7 and imports nothing of jumar. The graph is the original's own; its saver
takes every variable of it, those of the optimizer included.
"""

import importlib
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow_side import stub


def main():
    """Print the losses of some steps on one batch; save after the first `kept` of them."""
    folder, batch, restored, saved, kept, steps = sys.argv[1:7]
    sys.path.insert(0, folder)
    tf.logging.set_verbosity(tf.logging.ERROR)
    answers, sys.stdout = sys.stdout, sys.stderr
    stub("cv2")
    stub("PIL", Image=None)
    model = importlib.import_module("model_spatialCNN")
    pixels = np.load(batch)
    clean, noisy = (pixels[name].astype(np.float32) / 255.0 for name in ("clean", "noisy"))
    losses = []
    with tf.Session() as session:
        network = model.denoiser(session, batch_size=len(clean))
        feed = {network.Y_: clean, network.X: noisy, network.lr: 1e-3, network.is_training: True}
        saver = tf.train.Saver()
        if restored:
            saver.restore(session, restored)
        for step in range(int(steps)):
            if step == int(kept):
                saver.save(session, saved, write_meta_graph=False)
            losses.append(float(session.run([network.loss, network.train_op], feed)[0]))
    answers.write(json.dumps(losses))


if __name__ == "__main__":
    main()
