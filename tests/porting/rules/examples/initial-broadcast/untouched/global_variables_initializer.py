import tensorflow as tf

print(tf.global_variables_initializer)
