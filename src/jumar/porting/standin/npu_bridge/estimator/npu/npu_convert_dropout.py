"""On import, makes Keras's Dropout use the dropout of the NPU."""

from tensorflow.python.keras import backend
from tensorflow.python.keras.layers.core import Dropout
from tensorflow.python.keras.utils import tf_utils
from tensorflow.python.ops import array_ops, nn

from npu_bridge.estimator import npu_ops


def dropout_call(self, inputs, training=None):
    """Apply dropout if the layer is training; TensorFlow's own if there is a noise shape."""
    training = backend.learning_phase() if training is None else training
    noise_shape = self._get_noise_shape(inputs)

    def dropped():
        if noise_shape:
            return nn.dropout(inputs, noise_shape=noise_shape, seed=self.seed, rate=self.rate)
        return npu_ops.dropout(inputs, keep_prob=1.0 - self.rate, seed=self.seed)

    return tf_utils.smart_cond(training, dropped, lambda: array_ops.identity(inputs))


Dropout.call = dropout_call
