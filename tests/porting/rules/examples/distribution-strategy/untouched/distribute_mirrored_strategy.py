import tensorflow as tf

print(tf.distribute.MirroredStrategy)
