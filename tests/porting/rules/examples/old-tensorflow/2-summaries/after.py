import tensorflow as tf

histogram = tf.summary.histogram
tf.summary.scalar(name="loss", tensor=loss)
tf.summary.image("samples", images, max_outputs=16)
merged = tf.summary.merge([tf.summary.scalar("rate", rate), histogram("w", w)])
writer = tf.summary.FileWriter(folder, graph)
