import struct
import tensorflow as tf
from operator import mul, neg

data = struct.pack("<i", mul(2, neg(3)))
tf.pack = tf.stack
total = ops.mul(a, ops.concat(1, [a, b]))
