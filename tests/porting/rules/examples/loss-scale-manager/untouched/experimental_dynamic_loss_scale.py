import tensorflow as tf

print(tf.train.experimental.DynamicLossScale)
