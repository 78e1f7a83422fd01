import tensorflow as tf
from tensorflow.keras.layers import Dense, MultiHeadAttention

tf.random.set_seed(1)
writer = tf.summary.create_file_writer(folder)
attention = MultiHeadAttention(2, 8)
data = data.prefetch(tf.data.AUTOTUNE)
