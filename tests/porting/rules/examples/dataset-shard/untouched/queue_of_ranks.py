import os

import tensorflow as tf

files = files[int(os.getenv("RANK_ID", "0"))::8]
queue = tf.train.string_input_producer(files)
