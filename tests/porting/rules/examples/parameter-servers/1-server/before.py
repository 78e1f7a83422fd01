import tensorflow as tf

server = tf.train.Server(cluster, job_name=job)
