import tensorflow as tf

settings['TF_XLA_FLAGS'] = '1'
