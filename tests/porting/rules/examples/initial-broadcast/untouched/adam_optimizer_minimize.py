import tensorflow as tf

opt = tf.train.AdamOptimizer(lr).minimize(loss)
sess.run(tf.global_variables_initializer())
