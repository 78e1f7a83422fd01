import tensorflow as tf

tf.estimator.DNNClassifier(**words)
