import tensorflow as tf

with tf.Session() as sess:
    for x in xs:
        sess.run(predictions, {images: x})
