import os
import tensorflow as tf

print(os.environ['TF_XLA_FLAGS'])
