import random
import tensorflow as tf
from keras.layers import MultiHeadAttention

random.set_seed(1)
tf.compat.v2.random.set_seed(1)
