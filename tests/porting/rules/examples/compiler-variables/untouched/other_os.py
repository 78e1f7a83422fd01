import tensorflow as tf
import mine as os

os.environ['TF_XLA_FLAGS'] = '1'
