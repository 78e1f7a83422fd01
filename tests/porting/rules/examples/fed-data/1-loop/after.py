import tensorflow as tf
from models import train_op, x
from npu_bridge.npu_init import npu_config_proto

with tf.Session(config=npu_config_proto()) as sess:
    for batch in batches():
        sess.run(train_op, feed_dict={x: batch})
