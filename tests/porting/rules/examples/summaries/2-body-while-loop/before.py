import tensorflow as tf

def body(i):
    tf.summary.scalar('i', i)
    return i + 1

x = tf.while_loop(cond, body, [0])
