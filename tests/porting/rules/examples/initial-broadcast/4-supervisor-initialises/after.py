import tensorflow as tf
import os
from npu_bridge.npu_init import NPUDistributedOptimizer, hccl_ops, npu_config_proto


def main(loss):
    train_op = NPUDistributedOptimizer(tf.train.AdamOptimizer(1e-3)).minimize(loss)
    init = tf.global_variables_initializer()
    npu_broadcast = None
    if int(os.getenv("RANK_SIZE", "1")) > 1:
        npu_broadcast = tf.group(*[
            tf.assign(variable, hccl_ops.broadcast([variable], 0)[0])
            for variable in tf.global_variables()
        ])
    sv = tf.train.Supervisor(logdir='logs')
    with sv.managed_session(config=npu_config_proto()) as sess:
        print(sess.run(loss))
        sess.run(init)
        if npu_broadcast is not None:
            sess.run(npu_broadcast)
        sess.run(train_op)
