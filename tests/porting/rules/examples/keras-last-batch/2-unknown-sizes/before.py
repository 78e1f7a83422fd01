import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile("sgd", "mse")
if __name__ == "__main__":
    model.fit(x, y, epochs=2, validation_split=0.1)
