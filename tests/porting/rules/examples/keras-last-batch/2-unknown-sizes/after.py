import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import close_session, set_keras_session_npu_config

x, y = np.load("x.npy"), np.load("y.npy")
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile("sgd", "mse")
if __name__ == "__main__":
    npu_keras_session = set_keras_session_npu_config()
    model.fit(x, y, epochs=2, validation_split=0.1)
    close_session(npu_keras_session)
