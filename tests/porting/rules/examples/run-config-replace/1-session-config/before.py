import tensorflow as tf

config = tf.estimator.RunConfig(model_dir='logs')
config = config.replace(session_config=tf.ConfigProto(allow_soft_placement=True))
model = tf.estimator.DNNClassifier([8], columns, config=config)
