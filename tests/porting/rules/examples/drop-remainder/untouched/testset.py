import tensorflow as tf

testset = tf.data.TFRecordDataset(files).batch(8)
valset = tf.data.TFRecordDataset(files).batch(8)
opt.minimize(loss)
