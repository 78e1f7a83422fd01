import tensorflow as tf
import os

config = tf.ConfigProto()
lr = 0.001 * int(os.getenv("RANK_SIZE", "1"))
folder = 'logs' if int(os.getenv("RANK_ID", "0")) == 0 else None
