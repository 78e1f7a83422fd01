import tensorflow as tf

scores += (1.0 - mask) * -10000.0
