import tensorflow as tf

rc = tf.contrib.tpu.RunConfig(
    master=master,
    tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=1000))
