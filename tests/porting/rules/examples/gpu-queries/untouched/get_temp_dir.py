import tensorflow as tf

print(tf.test.get_temp_dir())
