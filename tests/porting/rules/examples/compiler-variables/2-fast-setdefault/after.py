from os import environ
import tensorflow as tf

def fast():
    pass
