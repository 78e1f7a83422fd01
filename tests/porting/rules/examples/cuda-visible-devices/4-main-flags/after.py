import tensorflow as tf

def main():
    import os as o
    o.environ.setdefault("ASCEND_DEVICE_ID", FLAGS.gpu)
