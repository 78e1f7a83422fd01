from os import environ
import tensorflow as tf

def fast():
    environ.setdefault('TF_ENABLE_AUTO_MIXED_PRECISION', '1')
