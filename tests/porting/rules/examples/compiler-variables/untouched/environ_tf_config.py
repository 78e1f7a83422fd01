import os
import tensorflow as tf

os.environ['TF_CONFIG'] = '{}'
