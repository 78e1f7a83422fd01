import tensorflow as tf

model = tf.contrib.learn.DNNClassifier(hidden_units=[8], feature_columns=columns)
