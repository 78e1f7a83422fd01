import tensorflow as tf

print(tf.test.is_built_with_cuda())
