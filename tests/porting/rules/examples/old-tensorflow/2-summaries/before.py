import tensorflow as tf

histogram = tf.histogram_summary
tf.scalar_summary(tags="loss", values=loss)
tf.image_summary("samples", images, max_images=16)
merged = tf.merge_summary([tf.scalar_summary("rate", rate), histogram("w", w)])
writer = tf.train.SummaryWriter(folder, graph)
