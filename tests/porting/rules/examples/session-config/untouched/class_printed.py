import tensorflow as tf

print(tf.Session)
