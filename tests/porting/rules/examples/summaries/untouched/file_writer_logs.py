import tensorflow as tf

writer = tf.summary.FileWriter(logs)
