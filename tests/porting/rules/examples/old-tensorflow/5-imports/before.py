from tensorflow import pack
from tensorflow.models.rnn import rnn_cell
from tensorflow.python.ops import seq2seq

cell = rnn_cell.BasicLSTMCell(8)
stacked = pack([a, b])
