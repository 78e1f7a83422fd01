import tensorflow as tf
from models import build
import os
from npu_bridge.npu_init import hccl_ops, npu_config_proto


def main():
    train_op = build()
    npu_broadcast = None
    if int(os.getenv("RANK_SIZE", "1")) > 1:
        npu_broadcast = tf.group(*[
            tf.assign(variable, hccl_ops.broadcast([variable], 0)[0])
            for variable in tf.global_variables()
        ])
    sv = tf.train.Supervisor(logdir='logs')
    with sv.managed_session(config=npu_config_proto()) as sess:
        if npu_broadcast is not None:
            sess.run(npu_broadcast)
        while not sv.should_stop():
            sess.run(train_op)
