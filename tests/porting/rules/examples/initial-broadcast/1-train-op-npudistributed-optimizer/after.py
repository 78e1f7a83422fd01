import os
import tensorflow as tf
from npu_bridge.npu_init import *

train_op = NPUDistributedOptimizer(tf.train.AdamOptimizer(lr)).minimize(loss)
with tf.Session(config=npu_config_proto()) as sess:
    init = tf.global_variables_initializer()
    sess.run(init)
    if int(os.getenv("RANK_SIZE", "1")) > 1:
        sess.run(
            tf.group(*[
                tf.assign(variable, hccl_ops.broadcast([variable], 0)[0])
                for variable in tf.global_variables()
            ])
        )
    sess.run(train_op)
