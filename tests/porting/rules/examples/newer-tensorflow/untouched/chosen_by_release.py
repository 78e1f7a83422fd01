import tensorflow as tf

try:
    from tensorflow.keras.layers import Normalization
except ImportError:
    from layers import Normalization

if tf.__version__ >= "2":
    tf.random.set_seed(1)
else:
    tf.set_random_seed(1)
