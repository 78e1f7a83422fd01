import tensorflow as tf

cell = tf.nn.rnn_cell.LSTMCell(8)
