import tensorflow as tf

def main():
    import os as o
    o.environ['CUDA_VISIBLE_DEVICES'] = FLAGS.gpu_list
    o.putenv('CUDA_VISIBLE_DEVICES', FLAGS.gpu)
